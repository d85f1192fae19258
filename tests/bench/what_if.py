"""Time of what-if scenarios on a large recorded cluster: loading, one drain, and drains of many nodes; one JSON line.

    python tests/bench/what_if.py [--nodes 5000] [--pods 50000] [--scenarios 200] [--file RECORDING]

`scenarios_cpu_s_for_all_nodes` is the CPU time of all scenarios, scaled to one scenario for each node.
"""

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender.analysis.recorded_cluster import load_cache, read_recording
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.planning.scenario import Scenario
from extender.planning.what_if import WhatIfRunner
from tests.bench.recording import write_recording


class Stopwatch:
    """Measures wall-clock and CPU time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self, name: str) -> dict[str, float]:
        """Return both times in seconds, under `<name>_s` and `<name>_cpu_s`."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {f"{name}_s": round(wall, 3), f"{name}_cpu_s": round(cpu, 3)}


def load(file: str) -> Cache:
    """Read a recording into a cache."""
    return load_cache(read_recording([file]))


def measure(file: str, scenarios: int) -> dict[str, object]:
    """Load the recording, and drain one node, then the first *scenarios* nodes in turn."""
    gc_tuning.set_gc_thresholds()
    watch = Stopwatch()
    cache = load(file)
    result: dict[str, object] = {"benchmark": "what_if", **watch.read("load")}
    names = list(cache.names)
    gc_tuning.freeze_heap()
    watch = Stopwatch()
    runner = WhatIfRunner(cache, wiring.build_setup().profiles, wiring.make_runtime())
    outcome = runner.run(Scenario(drain=(names[0],)))
    result |= watch.read("first_drain") | {"first_drain_moved": len(outcome.moved)}
    watch, moved, waiting = Stopwatch(), 0, 0
    for name in names[:scenarios]:
        outcome = runner.run(Scenario(drain=(name,)))
        moved, waiting = moved + len(outcome.moved), waiting + len(outcome.waiting)
    times = watch.read("scenarios")
    count = min(scenarios, len(names))
    result |= times | {"scenarios": count, "moved": moved, "waiting": waiting}
    result["scenarios_cpu_s_for_all_nodes"] = round(times["scenarios_cpu_s"] / count * len(names), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return result | {"nodes": len(names), "peak_rss_mb": peak, "python": platform.python_version()}


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--file", default="", help="a recording; without it, one is made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = args.file or f"{folder}/cluster.json.gz"
        if not args.file:
            write_recording(Path(file), args.nodes, args.pods)
        print(json.dumps(measure(file, args.scenarios)), flush=True)


if __name__ == "__main__":
    main()
