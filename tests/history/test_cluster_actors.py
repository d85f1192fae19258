"""The operations of a workload follow each other at their distances after a long outage."""

import pytest

from tests.history.cluster_actors import postpone


@pytest.mark.parametrize(
    ("planned", "now", "expected"),
    [
        (2.0, 102.01, 100.0),  # at its time
        (2.0, 102.75, 100.0),  # late by 0.75 s: the next operations follow at once
        (2.0, 117.0, 114.0),  # late by 15 s: the rest is moved by 14 s, and 1 s follows at once
    ],
)
def test_a_workload_is_postponed_so_that_no_operation_is_late_by_more_than_a_second(
    planned: float, now: float, expected: float
) -> None:
    assert postpone(100.0, planned, now) == expected
