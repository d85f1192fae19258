"""How fast to ask, how long to wait after failures, what Retry-After means."""

import pytest

from extender.client.pacing import Backoff, TokenBucket, bucket, retry_after

NOON = 1_445_412_480.0  # 2015-10-21T07:28:00Z


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    tokens = TokenBucket(qps=10.0, burst=3)
    assert [tokens.take(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.1, 0.2]


def test_a_bucket_fills_again_but_never_beyond_its_burst() -> None:
    tokens = TokenBucket(qps=10.0, burst=2)
    assert [tokens.take(100.0) for _ in range(2)] == [0.0, 0.0]
    assert tokens.take(100.05) == pytest.approx(0.05)
    assert [tokens.take(500.0) for _ in range(3)] == [0.0, 0.0, 0.1]


def test_a_token_given_back_serves_the_next() -> None:
    tokens = TokenBucket(qps=1.0, burst=1)
    assert tokens.take(0.0) == 0.0
    assert tokens.take(0.0) == 1.0
    tokens.give_back()
    assert tokens.take(0.0) == 1.0


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
def test_a_connection_s_rate_is_read_as_client_go_reads_it(qps: float, burst: int, waits: list[float]) -> None:
    tokens = bucket(qps, burst)
    assert tokens is not None
    assert [tokens.take(0.0) for _ in waits] == pytest.approx(waits)


def test_a_negative_rate_has_no_bound() -> None:
    assert bucket(-1.0, 100) is None


def test_waits_double_from_0_8_to_30_seconds() -> None:
    backoff = Backoff(lambda: 0.0)
    now, waits = 0.0, []
    for _ in range(8):
        waits.append(backoff.after_failure(now))
        now += waits[-1]
    assert waits == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


def test_chance_lengthens_a_wait_by_up_to_its_own_size() -> None:
    assert Backoff(lambda: 0.5).after_failure(0.0) == pytest.approx(1.2)
    assert Backoff(lambda: 0.999).after_failure(0.0) < 1.6


def test_two_quiet_minutes_make_waits_short_again() -> None:
    backoff = Backoff(lambda: 0.0)
    assert [backoff.after_failure(0.0), backoff.after_failure(1.0)] == pytest.approx([0.8, 1.6])
    assert backoff.after_failure(1.0 + 1.6 + 119.0) == pytest.approx(3.2)
    assert backoff.after_failure(500.0) == pytest.approx(0.8)


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
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOON) == seconds
