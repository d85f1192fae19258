"""The backoff doubles with each failure up to a maximum."""

import pytest

from extender.basics.backoff import calculate_backoff


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(-1, 0.0), (0, 0.0), (1, 1.5), (2, 3.0), (3, 6.0), (4, 10.0), (60, 10.0), (61, 10.0), (10_000, 10.0)],
)
def test_the_backoff_doubles_with_each_failure_up_to_the_maximum(failures: int, seconds: float) -> None:
    assert calculate_backoff(failures, 1.5, 10.0) == seconds
