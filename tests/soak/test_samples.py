"""The summary of samples: slope, medians, percentiles and the warm-up."""

import os

import pytest

from tests.soak.samples import MEGABYTE, Sample, fit_slope, percentile, read_sample, summarize, summarize_timer


def make_sample(seconds: float, rss_mb: float = 100, fds: int = 30, tasks: int = 20, lag_ms: float = 1) -> Sample:
    return Sample(seconds, int(rss_mb * MEGABYTE), fds, tasks, 1_000 * tasks, lag_ms, 2 * lag_ms)


@pytest.mark.parametrize(
    ("xs", "ys", "slope"),
    [
        ([0, 1, 2, 3], [5, 7, 9, 11], 2.0),
        ([0, 1, 2, 3], [4, 4, 4, 4], 0.0),
        ([0, 1, 2], [0, 3, 0], 0.0),
        ([10, 20, 30, 40], [1, 3, 2, 4], 0.08),
        ([7], [1], 0.0),
        ([], [], 0.0),
    ],
    ids=["a line", "flat", "a peak in the middle", "noise", "one sample", "no samples"],
)
def test_the_slope_is_that_of_the_least_squares(xs: list[float], ys: list[float], slope: float) -> None:
    assert fit_slope(xs, ys) == pytest.approx(slope)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]
    assert percentile([], 0.5) == 0


def test_tasks_of_bindings_in_progress_are_not_counted() -> None:
    values = summarize_timer([0.5, 1.25, 70.0], [61, 58, 99])
    assert values == {"tasks": 58, "lag_p99_ms": 70.0, "lag_max_ms": 70.0}


def test_growth_before_ten_minutes_is_no_slope() -> None:
    warm_up = [make_sample(second, rss_mb=50 + second / 10) for second in range(0, 600, 10)]
    flat = [make_sample(second, rss_mb=110) for second in range(600, 3600, 10)]
    line = summarize([*warm_up, *flat], 3600)
    assert (line["rss_mb_per_hour"], line["rss_start_mb"], line["samples"]) == (0.0, 110.0, 300)


def test_a_megabyte_per_hour_is_a_slope_of_one() -> None:
    line = summarize([make_sample(second, rss_mb=100 + second / 3600) for second in range(0, 3600, 10)], 3600)
    assert line["rss_mb_per_hour"] == pytest.approx(1, abs=0.01)


def test_a_short_run_has_a_shorter_warm_up() -> None:
    assert summarize([make_sample(second) for second in range(0, 60, 5)], 60)["samples"] == 10
    with pytest.raises(ValueError, match="no sample after the warm-up of 10 s"):
        summarize([make_sample(5)], 60)


def test_descriptors_tasks_and_blocks_are_medians_of_five_samples() -> None:
    fds = [30, 31, 90, 30, 32, 10, 40, 41, 99, 42, 42]
    line = summarize([make_sample(10 + index, fds=value, tasks=value + 1) for index, value in enumerate(fds)], 60)
    assert [line[name] for name in ("fds_start", "fds_end", "tasks_start", "tasks_end")] == [31, 42, 32, 43]
    assert (line["blocks_start"], line["blocks_end"]) == (32_000, 43_000)


def test_the_lag_is_the_median_percentile_and_the_overall_maximum() -> None:
    lags = [1.0, 2.0, 3.0, 50.0, 2.5]
    line = summarize([make_sample(10 + index, lag_ms=lag) for index, lag in enumerate(lags)], 60)
    assert (line["lag_p99_ms"], line["lag_max_ms"]) == (2.5, 100.0)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the size of a process is read from /proc")  # noqa: PTH110
def test_a_sample_has_the_sizes_of_the_process() -> None:
    probe = {"tasks": 3, "allocated_blocks": 7_000, "lag_p99_ms": 0.5, "lag_max_ms": 0.7}
    before = read_sample(os.getpid(), 1.5, probe)
    descriptors = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
    ballast = bytearray(b"x") * (64 * MEGABYTE)
    after = read_sample(os.getpid(), 2.5, probe)
    for descriptor in descriptors:
        os.close(descriptor)
    assert after.file_descriptors - before.file_descriptors == 5
    assert after.allocated_blocks == 7_000
    assert after.rss_bytes - before.rss_bytes > 0.9 * len(ballast)
    assert (before.seconds, before.tasks, before.lag_p99_ms, before.lag_max_ms) == (1.5, 3, 0.5, 0.7)
