"""Samples of a process over time, and their summary: memory slope, file descriptors, tasks and event loop lag."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WARM_UP_SECONDS: Final = 600.0
"""Seconds in which caches fill. A run of less than six times this has a warm-up of a sixth."""

MEGABYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """The sizes of a process.

    Attributes:
        seconds: since the start of the load.
        rss_bytes: the resident memory.
        file_descriptors: the number of open files and sockets.
        tasks: the fewest asyncio tasks since the sample before.
        allocated_blocks: the memory blocks of Python's allocator that are in use. Unlike the resident memory, they do
            not depend on fragmentation.
        lag_p99_ms: the 99th percentile of the event loop lag since the sample before.
        lag_max_ms: the longest event loop lag since the sample before.
    """

    seconds: float
    rss_bytes: int
    file_descriptors: int
    tasks: int
    allocated_blocks: int
    lag_p99_ms: float
    lag_max_ms: float


def read_sample(pid: int, seconds: float, probe: Mapping[str, float]) -> Sample:
    """Read the sizes of a process from /proc, and the others from the values of its probe."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Sample(
        seconds,
        pages * os.sysconf("SC_PAGE_SIZE"),
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        int(probe["tasks"]),
        int(probe["allocated_blocks"]),
        probe["lag_p99_ms"],
        probe["lag_max_ms"],
    )


def summarize_timer(lags: Sequence[float], task_counts: Sequence[int]) -> dict[str, float]:
    """Return the values of a probe from the event loop lags (ms) and the numbers of tasks at the ticks of its timer.

    Each binding in progress is a task, so the number of tasks follows the load. The fewest tasks of some seconds are
    those that never end, and a task that leaks is one of them.
    """
    return {
        "tasks": min(task_counts),
        "lag_p99_ms": round(percentile(lags, 0.99), 2),
        "lag_max_ms": round(max(lags), 2),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not below *share* of all values; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def fit_slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the slope of the line with the least squares; 0 for less than two different *xs*."""
    mean_x, mean_y = sum(xs) / max(1, len(xs)), sum(ys) / max(1, len(ys))
    variance = sum((x - mean_x) ** 2 for x in xs)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / variance if variance else 0.0


def summarize(samples: Sequence[Sample], seconds: float) -> dict[str, float]:
    """Return the figures of a run of *seconds*, from the samples after the warm-up.

    `rss_mb_per_hour` is the slope of the resident memory. The numbers at the start and at the end are medians of at
    most five samples, because a connection of one request is no leak.
    """
    warm_up = min(WARM_UP_SECONDS, seconds / 6)
    measured = [sample for sample in samples if sample.seconds >= warm_up]
    if not measured:
        raise ValueError(f"no sample after the warm-up of {warm_up:.0f} s")
    first, last = measured[:5], measured[-5:]
    slope = fit_slope([sample.seconds for sample in measured], [sample.rss_bytes for sample in measured])

    def middle(values: Sequence[int]) -> int:
        return sorted(values)[len(values) // 2]

    return {
        "samples": len(measured),
        "rss_start_mb": round(middle([sample.rss_bytes for sample in first]) / MEGABYTE, 1),
        "rss_end_mb": round(middle([sample.rss_bytes for sample in last]) / MEGABYTE, 1),
        "rss_mb_per_hour": round(slope * 3600 / MEGABYTE, 2),
        "fds_start": middle([sample.file_descriptors for sample in first]),
        "fds_end": middle([sample.file_descriptors for sample in last]),
        "blocks_start": middle([sample.allocated_blocks for sample in first]),
        "blocks_end": middle([sample.allocated_blocks for sample in last]),
        "tasks_start": middle([sample.tasks for sample in first]),
        "tasks_end": middle([sample.tasks for sample in last]),
        "lag_p99_ms": round(percentile([sample.lag_p99_ms for sample in measured], 0.5), 1),
        "lag_max_ms": round(max(sample.lag_max_ms for sample in measured), 1),
    }
