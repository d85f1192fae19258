"""The matching pods of topology domains and their minimum, which a dry run updates."""

import numpy as np
import pytest

from extender.plugins.pod_topology_spread.filter_state import DomainMatchNums


def make_match_nums(*match_nums: int, value_ids: list[int] | None = None) -> DomainMatchNums:
    ids = list(range(len(match_nums))) if value_ids is None else value_ids
    return DomainMatchNums(np.array(match_nums, dtype=np.int64), np.array(ids, dtype=np.int64))


def test_only_domains_count_for_the_minimum() -> None:
    assert make_match_nums(0, 3, 2, value_ids=[1, 2]).min_match_num == 2


def test_the_minimum_without_domains_is_the_largest_int32() -> None:
    domains = make_match_nums(5, value_ids=[])
    assert (domains.min_match_num, domains.domain_count) == (2147483647, 0)


def test_an_update_does_not_write_to_the_shared_array() -> None:
    shared = np.array([1, 2], dtype=np.int64)
    domains = DomainMatchNums(shared, np.array([0, 1], dtype=np.int64))
    domains.update(0, 5)
    assert (domains.match_nums.tolist(), domains.min_match_num) == ([6, 2], 2)
    assert shared.tolist() == [1, 2]


def test_a_clone_is_updated_independently() -> None:
    domains = make_match_nums(1, 2)
    domains.update(0, 1)
    clone = domains.clone()
    clone.update(1, -2)
    domains.update(0, 3)
    assert (clone.match_nums.tolist(), clone.min_match_num) == ([2, 0], 0)
    assert (domains.match_nums.tolist(), domains.min_match_num) == ([5, 2], 2)


@pytest.mark.parametrize(
    ("value", "match_num", "delta", "expected"),
    [
        pytest.param(0, 2, 1, 2, id="the minimum rises to the second domain"),
        pytest.param(2, 0, -4, 0, id="another domain becomes the minimum"),
        pytest.param(2, 5, 1, 1, id="another domain does not change the minimum"),
        pytest.param(0, 9, 0, 1, id="without a change the minimum stays"),
    ],
)
def test_the_minimum_after_each_of_several_changes(value: int, match_num: int, delta: int, expected: int) -> None:
    domains = make_match_nums(1, 2, 4)
    arrays = (np.array([number], dtype=np.int64) for number in (value, match_num, delta))
    assert domains.compute_min_match_nums_after_changes(*arrays).tolist() == [expected]
