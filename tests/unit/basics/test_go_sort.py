"""The order of equal elements: the recorded orders are those of Go's sort.Slice (Go 1.26)."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from extender.basics.go_sort import is_stable, sort_like_go

CASES = json.loads(Path(__file__).with_name("go_sort_cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_elements_are_in_the_order_of_go(case: dict[str, Any]) -> None:
    assert list(sort_like_go(tuple(case["keys"]))) == case["order"]


def test_elements_with_different_keys_are_sorted() -> None:
    rng = Random(1)
    for count in range(150):
        keys = tuple(2 * key for key in rng.sample(range(1000), count))

        assert [keys[index] for index in sort_like_go(keys)] == sorted(keys)


def test_up_to_twelve_equal_elements_keep_their_order() -> None:
    for count in range(30):
        keeps_order = sort_like_go((0,) * count) == tuple(range(count))

        assert keeps_order or not is_stable(count)
    assert is_stable(12)
    assert not is_stable(13)
