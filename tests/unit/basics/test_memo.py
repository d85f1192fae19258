"""Memo: values derived from an object are computed once per key."""

from extender.basics.memo import Memo


def test_a_value_is_created_once_per_key_also_if_it_is_none() -> None:
    memo, calls = Memo(), []

    def create() -> None:
        calls.append("create")

    assert memo.get_or_create("a", create) is None
    assert memo.get_or_create("a", create) is None
    assert memo.get_or_create(("a", 1), lambda: 5) == 5
    assert calls == ["create"]
