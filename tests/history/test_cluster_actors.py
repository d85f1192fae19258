"""The operations of a workload follow each other at their distances after a long outage."""

import pytest

from tests.history.cluster_actors import postpone


@pytest.mark.parametrize(
    ("planned", "now", "expected"),
    [
        (2.0, 102.01, 100.0),  # at its time
        (2.0, 105.5, 100.0),  # late by 3.5 s: the next operations follow at once
        (2.0, 117.0, 111.0),  # late by 15 s: the rest is moved by 11 s, and 4 s follow at once
    ],
)
def test_a_workload_is_postponed_so_that_no_operation_is_late_by_more_than_four_seconds(
    planned: float, now: float, expected: float
) -> None:
    assert postpone(100.0, planned, now) == expected
