"""The comparison of two answers: which texts have no meaning, and which have."""

from typing import Any

import pytest

from tests.oracle.answers import find_answer_differences


def make_answer(**result: Any) -> dict[str, Any]:
    return {"pods": {"shop/web": result}}


FAILED = "0/2 nodes are available: 2 Insufficient cpu. "


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ('running "A" filter plugin: no such key: x', 'running "A" filter plugin: no such key'),
        (FAILED + 'preemption: running "A" filter plugin: x', FAILED + 'preemption: running "A" filter plugin: y'),
        (FAILED + 'preemption: running "A" filter plugin: x', FAILED + 'preemption: [running "A": x, running "A": y]'),
    ],
    ids=["the attempt", "preemption", "preemption on two nodes"],
)
def test_the_text_of_an_internal_error_has_no_meaning(want: str, got: str) -> None:
    assert find_answer_differences(make_answer(message=want), make_answer(message=got)) == []


@pytest.mark.parametrize(
    "got",
    ['running "B" filter plugin: no such key: x', FAILED + "preemption: not eligible", None],
    ids=["another plugin", "no error", "no message"],
)
def test_where_an_internal_error_comes_from_has_a_meaning(got: str | None) -> None:
    want = 'running "A" filter plugin: no such key: x'
    differences = find_answer_differences(make_answer(message=want), make_answer(message=got))
    assert [line.partition(":")[0] for line in differences] == ["shop/web.message"]


def test_a_pod_that_only_one_of_them_has_is_a_difference() -> None:
    assert find_answer_differences(make_answer(best=["n1"]), {"pods": {}}) == [
        "shop/web: want {'best': ['n1']}, got '(absent)'"
    ]


def test_differences_of_pod_groups_name_the_group_and_the_member() -> None:
    def make_group(node: str, victims: list[str]) -> dict[str, Any]:
        return {"pods": {}, "podGroups": {"shop/ring": {"victims": victims, "members": {"shop/web": {"node": node}}}}}

    assert find_answer_differences(make_group("n1", ["a", "b"]), make_group("n1", ["b", "a"])) == []
    assert find_answer_differences(make_group("n1", ["a"]), make_group("n2", [])) == [
        "podGroup shop/ring.members.shop/web.node: want 'n1', got 'n2'",
        "podGroup shop/ring.victims: want ['a'], got []",
    ]
