"""Runs the benchmarks one after another and holds what they say against the committed baseline.

    python tests/bench/suite.py [--all] [--runs 1] [--write] [--record FILE] [NAME ...]

Machines differ, so figures are compared as ratios: each is divided by how fast this machine does a fixed piece of work
of the same kind (Python, NumPy, decoding), measured just before and after. A ratio to the baseline above 1 is slower
than it was, or larger. What is above `--limit` is measured twice more; exits with 1 if the median stays above it.
`--write` makes what was measured the baseline; `--record` adds the lines, with the milliseconds of that fixed piece of
work, to a file that `make plots` draws from.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.named import all_known
from tests.bench.workloads import SPECS

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"


@dataclass(frozen=True)
class Benchmark:
    """One command, and the figures of its lines that are compared: milliseconds or the like (`time`), or `size`."""

    command: tuple[str, ...]
    time: tuple[str, ...] = ()
    size: tuple[str, ...] = ()


CONSTRAINED = [name for name in SPECS if name not in ("basic", "mixedshapes")]
SHORT = {
    "core": Benchmark(("core.py",), ("cpu_ms_per_pod",)),
    "dra": Benchmark(("dra.py", "--nodes", "500", "--pods", "500"), ("cpu_ms_per_pod",)),
    "preemption": Benchmark(("preemption.py", "plain", "guarded"), ("p50_ms",)),
    "verbs": Benchmark(("verbs.py", "500-names", "5000-names", "5000-nodes", "--whole", "5"), ("user_ms",)),
    "watching": Benchmark(
        ("watching.py", "--nodes", "1000", "--pods", "10000", "--seconds", "5"), ("cpu_us_each",), ("peak_rss_mb",)
    ),
    "scaling": Benchmark(("scaling.py",), ("cpu_us_per_pod", "event_ms")),
}
LONG = {
    "core-50000": Benchmark(("core.py", "basic", "spread", "--nodes", "50000"), ("cpu_ms_per_pod",)),
    "drain": Benchmark(("drain.py", "basic", "mixedshapes"), ("ours_cpu_ms_per_pod",), ("ours_peak_rss_mb",)),
    "drain-constrained": Benchmark(("drain.py", *CONSTRAINED), ("ours_cpu_ms_per_pod",), ("ours_peak_rss_mb",)),
    "called": Benchmark(("drain.py", "basic", "--by", "called,kube"), ("called_cpu_ms_per_pod",)),
    "living": Benchmark(("living.py",), ("cpu_seconds",), ("peak_rss_mb",)),
    "lag": Benchmark(("lag.py",)),
    "large": Benchmark(("watching.py",), ("cpu_us_each",), ("peak_rss_mb",)),
    "largest": Benchmark(("watching.py", "memory", "--nodes", "50000", "--pods", "500000"), (), ("peak_rss_mb",)),
    "scaling-longest": Benchmark(("scaling.py", "--longest"), ("cpu_us_per_pod", "event_ms")),
}
LABELS = ("workload", "case", "verb", "curve", "every_node", "nodes", "pods", "pending")
"""Fields that tell the lines of one benchmark apart."""


def yardstick() -> float:
    """Milliseconds of processor time for a fixed piece of work; the best of several, as others may be at work."""
    text = json.dumps([{"name": f"pod-{number}", "labels": {"app": str(number)}} for number in range(2000)]).encode()
    column = np.arange(5000, dtype=np.int64)
    times = []
    for _ in range(7):
        began = time.process_time()
        counts: dict[str, int] = {}
        for number in range(100_000):
            key = f"{number % 977}"
            counts[key] = counts.get(key, 0) + number
        for _ in range(500):
            (column * 3 // 7 > 100).sum()
        for _ in range(10):
            msgspec.json.decode(text)
        times.append((time.process_time() - began) * 1000)
    return min(times)


def lines(command: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """What a benchmark prints, which is printed here as well."""
    with subprocess.Popen([sys.executable, str(HERE / command[0]), *command[1:]], stdout=subprocess.PIPE) as run:
        for text in run.stdout or ():
            sys.stdout.write(text.decode())
            sys.stdout.flush()
            yield json.loads(text)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {run.returncode}")


def figures(name: str, benchmark: Benchmark, told: list[dict[str, Any]]) -> Iterator[tuple[str, float, bool]]:
    """Each figure that is compared: its name, the number, and whether it is a time."""
    for line in told:
        labels = [f"{line[label]}" for label in LABELS if line.get(label) is not None]
        for field in (*benchmark.time, *benchmark.size):
            if line.get(field):
                yield " ".join([name, *labels, field]), float(line[field]), field in benchmark.time


def machine() -> str:
    """What this is measured on, in words."""
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"


def measure(names: dict[str, Benchmark], runs: int, record: Path | None) -> dict[str, list[float]]:
    """Every figure of each run; times in units of the yardstick."""
    found: dict[str, list[float]] = defaultdict(list)
    for name, benchmark in names.items():
        for _ in range(runs):
            before = yardstick()
            told = list(lines(benchmark.command))
            unit = min(before, yardstick())
            for key, value, timed in figures(name, benchmark, told):
                found[key].append(value / unit if timed else value)
            if record is not None:
                with record.open("a") as file:
                    file.writelines(json.dumps({**line, "yardstick_ms": round(unit, 1)}) + "\n" for line in told)
    return found


def medians(found: dict[str, list[float]]) -> dict[str, float]:
    """Of the runs of each figure."""
    return {key: round(median(values), 5) for key, values in found.items()}


def beyond(found: dict[str, list[float]], baseline: dict[str, float], limit: float) -> list[str]:
    """The figures whose medians are more than *limit* times their baseline."""
    return [key for key, value in medians(found).items() if key in baseline and value > limit * baseline[key]]


def compare(found: dict[str, list[float]], baseline: dict[str, float], limit: float) -> list[str]:
    """Print the ratio of each figure to its baseline; those beyond *limit*."""
    ratios = {key: value / baseline[key] for key, value in medians(found).items() if key in baseline}
    for key, ratio in ratios.items():
        print(f"{ratio:6.2f} x baseline  {key}")
    if ratios:
        print(f"{median(ratios.values()):6.2f} x baseline  median of {len(ratios)}")
    return beyond(found, baseline, limit)


def main() -> None:
    """Parse the command line, run, print."""
    every = {**SHORT, **LONG}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(every)}; the short ones if none")
    parser.add_argument("--all", action="store_true", help="the long ones too: two hours, and `make control-plane`")
    parser.add_argument("--runs", type=int, default=1, help="times each is run; medians count (1)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add what is printed to this file")
    parser.add_argument("--write", action="store_true", help="make it the baseline")
    parser.add_argument("--limit", type=float, default=1.5, help="times the baseline that fail (1.5)")
    args = parser.parse_args()
    all_known(parser, "benchmark", args.names, every)
    chosen = every if args.all else SHORT
    chosen = {name: every[name] for name in args.names} or chosen
    found = measure(chosen, args.runs, args.record)
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"figures": {}}
    if args.write:
        kept = {**known["figures"], **medians(found)}
        BASELINE.write_text(json.dumps({"machine": machine(), "figures": kept}, indent=1) + "\n")
        return
    slower = beyond(found, known["figures"], args.limit)
    doubtful = {name: each for name, each in chosen.items() if any(key.startswith(f"{name} ") for key in slower)}
    for key, values in measure(doubtful, 2, args.record).items():  # one run of a machine that others share says little
        found[key] += values
    print(f"here: {machine()}; baseline: {known.get('machine', 'none')}")
    slower = compare(found, known["figures"], args.limit)
    if slower:
        raise SystemExit(f"beyond {args.limit} times the baseline: {', '.join(slower)}")


if __name__ == "__main__":
    main()
