"""The token bucket, backoff delays, and Retry-After."""

import pytest

from extender.client.rate_limit import Backoff, TokenBucket, make_token_bucket, parse_retry_after

NOON = 1_445_412_480.0  # 2015-10-21T07:28:00Z


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    tokens = TokenBucket(qps=10.0, burst=3)
    assert [tokens.reserve(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.1, 0.2]


def test_a_bucket_fills_again_but_never_beyond_its_burst() -> None:
    tokens = TokenBucket(qps=10.0, burst=2)
    assert [tokens.reserve(100.0) for _ in range(2)] == [0.0, 0.0]
    assert tokens.reserve(100.05) == pytest.approx(0.05)
    assert [tokens.reserve(500.0) for _ in range(3)] == [0.0, 0.0, 0.1]


def test_a_cancelled_token_can_be_reserved_again() -> None:
    tokens = TokenBucket(qps=1.0, burst=1)
    assert tokens.reserve(0.0) == 0.0
    assert tokens.reserve(0.0) == 1.0
    tokens.cancel()
    assert tokens.reserve(0.0) == 1.0


@pytest.mark.parametrize(
    ("qps", "burst", "waits"),
    [
        (0.0, 0, [0.0] * 10 + [0.2]),
        (50.0, 2, [0.0, 0.0, 0.02]),
        (0.0, 1, [0.0, 0.2]),
        (2.0, 0, [0.0] * 10 + [0.5]),
    ],
    ids=["zeros mean 5 and 10", "as configured", "only the rate is 0", "only the burst is 0"],
)
def test_qps_and_burst_have_client_go_s_defaults(qps: float, burst: int, waits: list[float]) -> None:
    tokens = make_token_bucket(qps, burst)
    assert tokens is not None
    assert [tokens.reserve(0.0) for _ in waits] == pytest.approx(waits)


def test_a_negative_rate_has_no_limit() -> None:
    assert make_token_bucket(-1.0, 100) is None


def test_delays_double_from_0_8_to_30_seconds() -> None:
    backoff = Backoff(lambda: 0.0)
    now, waits = 0.0, []
    for _ in range(8):
        waits.append(backoff.compute_next_delay(now))
        now += waits[-1]
    assert waits == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


def test_jitter_extends_a_delay_to_at_most_twice_its_value() -> None:
    assert Backoff(lambda: 0.5).compute_next_delay(0.0) == pytest.approx(1.2)
    assert Backoff(lambda: 0.999).compute_next_delay(0.0) < 1.6


def test_two_minutes_without_failures_reset_the_delay() -> None:
    backoff = Backoff(lambda: 0.0)
    assert [backoff.compute_next_delay(0.0), backoff.compute_next_delay(1.0)] == pytest.approx([0.8, 1.6])
    assert backoff.compute_next_delay(1.0 + 1.6 + 119.0) == pytest.approx(3.2)
    assert backoff.compute_next_delay(500.0) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("3", 3.0),
        (" 0 ", 0.0),
        ("86400", 60.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("Wed, 21 Oct 2015 07:28:20 GMT", 20.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 60.0),
        ("Wed, 21 Oct 99999999999999999999 07:28:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 +99999999999999999999", None),
    ],
    ids=[
        "no header",
        "an empty one",
        "seconds",
        "at once",
        "a day counts as a minute",
        "below 0",
        "a fraction",
        "a word",
        "a date",
        "a date that has passed",
        "a date far off",
        "a year of twenty digits",
        "an offset of twenty digits",
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOON) == seconds
