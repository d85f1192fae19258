"""Time to count copies of a pod that fit into a large recorded cluster: one JSON line per workload.

python tests/bench/fits.py [--nodes 5000] [--pods 50000] [--copies 10000] [--file RECORDING] [WORKLOAD ...]
"""

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender.analysis.pod_placer import PodPlacer
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.planning.fits import count_fitting_copies
from tests.bench.arguments import check_names
from tests.bench.recording import write_recording
from tests.bench.what_if import Stopwatch, load
from tests.bench.workloads import SPECS, make_pod


def measure(cache: Cache, workload: str, copies: int) -> dict[str, object]:
    """Place at most *copies* copies of a pod of *workload*."""
    setup, runtime = wiring.build_setup(), wiring.make_runtime()
    watch = Stopwatch()
    result = count_fitting_copies(cache, make_pod(workload, 0), PodPlacer(cache, setup.profiles, runtime), limit=copies)
    reasons = [", ".join(group.reasons) for group in result.stopped_by]
    counts = {"fits": result.fits, "nodes_used": len(result.placed), "stopped_by": reasons}
    return {"benchmark": "fits", "workload": workload, **counts, **watch.read("fits")}


def main() -> None:
    """Parse the command line and measure each workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; basic by default")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--copies", type=int, default=10_000)
    parser.add_argument("--file", default="", help="a recording; without it, one is made")
    args = parser.parse_args()
    check_names(parser, "workload", args.workloads, SPECS)
    gc_tuning.set_gc_thresholds()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = args.file or f"{folder}/cluster.json.gz"
        if not args.file:
            write_recording(Path(file), args.nodes, args.pods)
        cache = load(file)
    gc_tuning.freeze_heap()
    for workload in args.workloads or ["basic"]:
        result = measure(cache, workload, args.copies)
        print(json.dumps({**result, "nodes": len(cache.names), "python": platform.python_version()}), flush=True)


if __name__ == "__main__":
    main()
