"""Runs the benchmarks one after another and compares their results with the committed baseline.

    python tests/bench/suite.py [--all] [--runs 1] [--write] [--record FILE] [NAME ...]

Machines differ, so times are divided by a reference time: the time of a fixed workload of Python, NumPy and decoding,
measured just before and after. A ratio to the baseline above 1 is slower or larger. Values above `--limit` are
measured twice more; the exit status is 1 if the median stays above it. `--write` makes the results the baseline;
`--record` appends the lines, with the reference time, to a file that `make plots` reads.
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

from tests.bench.arguments import check_names
from tests.bench.workloads import SPECS

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"


@dataclass(frozen=True)
class Benchmark:
    """A command, and the compared fields of its lines: times (`time`) and sizes (`size`)."""

    command: tuple[str, ...]
    time: tuple[str, ...] = ()
    size: tuple[str, ...] = ()


CONSTRAINED = [name for name in SPECS if name not in ("basic", "mixedshapes")]
SHORT = {
    "core": Benchmark(("core.py",), ("cpu_ms_per_pod",)),
    "dra": Benchmark(("dra.py", "--nodes", "500", "--pods", "500"), ("cpu_ms_per_pod",)),
    "preemption": Benchmark(("preemption.py", "plain", "guarded"), ("p50_ms",)),
    "verbs": Benchmark(
        ("verbs.py", "500-names", "500-rotating", "5000-names", "5000-nodes", "--whole", "5"), ("user_ms",)
    ),
    "watch": Benchmark(
        ("watch.py", "--nodes", "1000", "--pods", "10000", "--seconds", "5"), ("cpu_us_each",), ("peak_rss_mb",)
    ),
    "scaling": Benchmark(("scaling.py",), ("cpu_us_per_pod", "event_ms")),
}
LONG = {
    "core-50000": Benchmark(("core.py", "basic", "spread", "--nodes", "50000"), ("cpu_ms_per_pod",)),
    "drain": Benchmark(("drain.py", "basic", "mixedshapes"), ("ours_cpu_ms_per_pod",), ("ours_peak_rss_mb",)),
    "drain-constrained": Benchmark(("drain.py", *CONSTRAINED), ("ours_cpu_ms_per_pod",), ("ours_peak_rss_mb",)),
    "called": Benchmark(("drain.py", "basic", "--by", "called,kube"), ("called_cpu_ms_per_pod",)),
    "gangs": Benchmark(("gangs.py",), ("ours_cpu_ms_per_pod",), ("ours_peak_rss_mb",)),
    "latency": Benchmark(("latency.py",), ("cpu_seconds",), ("peak_rss_mb",)),
    "lag": Benchmark(("lag.py",)),
    "large": Benchmark(("watch.py",), ("cpu_us_each",), ("peak_rss_mb",)),
    "largest": Benchmark(("watch.py", "memory", "--nodes", "50000", "--pods", "500000"), (), ("peak_rss_mb",)),
    "scaling-longest": Benchmark(("scaling.py", "--longest"), ("cpu_us_per_pod", "event_ms")),
}
LABELS = ("workload", "case", "verb", "curve", "every_node", "nodes", "pods", "pending")
"""Fields that identify a line of a benchmark."""


def measure_reference_ms() -> float:
    """Return the milliseconds of CPU time of a fixed workload; the minimum of several runs."""
    text = json.dumps([{"name": f"pod-{number}", "labels": {"app": str(number)}} for number in range(2000)]).encode()
    column = np.arange(5000, dtype=np.int64)
    times = []
    for _ in range(7):
        started = time.process_time()
        counts: dict[str, int] = {}
        for number in range(100_000):
            key = f"{number % 977}"
            counts[key] = counts.get(key, 0) + number
        for _ in range(500):
            (column * 3 // 7 > 100).sum()
        for _ in range(10):
            msgspec.json.decode(text)
        times.append((time.process_time() - started) * 1000)
    return min(times)


def run_benchmark(command: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Run a benchmark; print and yield its lines."""
    with subprocess.Popen([sys.executable, str(HERE / command[0]), *command[1:]], stdout=subprocess.PIPE) as run:
        for text in run.stdout or ():
            sys.stdout.write(text.decode())
            sys.stdout.flush()
            yield json.loads(text)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {run.returncode}")


def compared_values(name: str, benchmark: Benchmark, lines: list[dict[str, Any]]) -> Iterator[tuple[str, float, bool]]:
    """Yield name and value of each compared field, and whether it is a time."""
    for line in lines:
        labels = [f"{line[label]}" for label in LABELS if line.get(label) is not None]
        for field in (*benchmark.time, *benchmark.size):
            if line.get(field):
                yield " ".join([name, *labels, field]), float(line[field]), field in benchmark.time


def describe_machine() -> str:
    """Return a description of this machine."""
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"


def measure(names: dict[str, Benchmark], runs: int, record: Path | None) -> dict[str, list[float]]:
    """Run benchmarks; return all values by name, times in units of the reference time."""
    values_by_name: dict[str, list[float]] = defaultdict(list)
    for name, benchmark in names.items():
        for _ in range(runs):
            reference_before = measure_reference_ms()
            lines = list(run_benchmark(benchmark.command))
            reference_ms = min(reference_before, measure_reference_ms())
            for key, value, timed in compared_values(name, benchmark, lines):
                values_by_name[key].append(value / reference_ms if timed else value)
            if record is not None:
                with record.open("a") as file:
                    file.writelines(
                        json.dumps({**line, "yardstick_ms": round(reference_ms, 1)}) + "\n" for line in lines
                    )
    return values_by_name


def medians(values_by_name: dict[str, list[float]]) -> dict[str, float]:
    """Return the median of each value."""
    return {key: round(median(values), 5) for key, values in values_by_name.items()}


def find_regressions(values_by_name: dict[str, list[float]], baseline: dict[str, float], limit: float) -> list[str]:
    """Return the names of the values whose medians exceed *limit* times the baseline."""
    return [key for key, value in medians(values_by_name).items() if key in baseline and value > limit * baseline[key]]


def print_ratios(values_by_name: dict[str, list[float]], baseline: dict[str, float], limit: float) -> list[str]:
    """Print the ratio of each value to the baseline; return the names of those above *limit*."""
    ratios = {key: value / baseline[key] for key, value in medians(values_by_name).items() if key in baseline}
    for key, ratio in ratios.items():
        print(f"{ratio:6.2f} x baseline  {key}")
    if ratios:
        print(f"{median(ratios.values()):6.2f} x baseline  median of {len(ratios)}")
    return find_regressions(values_by_name, baseline, limit)


def main() -> None:
    """Parse the command line, run the benchmarks and compare."""
    all_benchmarks = {**SHORT, **LONG}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(all_benchmarks)}; the short ones if none"
    )
    parser.add_argument("--all", action="store_true", help="also the long ones: two hours, needs `make control-plane`")
    parser.add_argument("--runs", type=int, default=1, help="runs per benchmark; medians are compared (1)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the printed lines to this file")
    parser.add_argument("--write", action="store_true", help="make the results the baseline")
    parser.add_argument("--limit", type=float, default=1.5, help="largest ratio to the baseline (1.5)")
    args = parser.parse_args()
    check_names(parser, "benchmark", args.names, all_benchmarks)
    selected = all_benchmarks if args.all else SHORT
    selected = {name: all_benchmarks[name] for name in args.names} or selected
    values_by_name = measure(selected, args.runs, args.record)
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"figures": {}}
    if args.write:
        figures = {**baseline["figures"], **medians(values_by_name)}
        BASELINE.write_text(json.dumps({"machine": describe_machine(), "figures": figures}, indent=1) + "\n")
        return
    regressions = find_regressions(values_by_name, baseline["figures"], args.limit)
    benchmarks_to_repeat = {
        name: benchmark
        for name, benchmark in selected.items()
        if any(key.startswith(f"{name} ") for key in regressions)
    }
    for key, values in measure(
        benchmarks_to_repeat, 2, args.record
    ).items():  # a single run on a shared machine is noisy
        values_by_name[key] += values
    print(f"here: {describe_machine()}; baseline: {baseline.get('machine', 'none')}")
    regressions = print_ratios(values_by_name, baseline["figures"], args.limit)
    if regressions:
        raise SystemExit(f"beyond {args.limit} times the baseline: {', '.join(regressions)}")


if __name__ == "__main__":
    main()
