"""Seconds of one run of `extender experiment` on the openb trace: one JSON line per policy.

    python tests/bench/experiment.py [--trace FILE] [--seed 42] [POLICY ...]

The trace has 1,213 nodes with 6,212 GPUs, and about 10,600 pods arrive. The time includes the order of the pods and the
build of the scheduler, but not the reading of the trace. `cpu_seconds` does not depend on other processes.
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender.analysis.recorded_cluster import read_recording
from extender.basics import gc_tuning
from extender.experiments.gpu_trace import make_trace
from extender.experiments.policies import find_policies
from extender.experiments.runner import run_experiment

TRACE = Path(__file__).with_name("openb-default.json.gz")


def main() -> None:
    """Run each policy once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="*", default=["FGD", "Fill"], metavar="POLICY")
    parser.add_argument("--trace", default=str(TRACE))
    parser.add_argument("--seed", type=int, default=42)
    arguments = parser.parse_args()
    gc_tuning.set_gc_thresholds()
    trace = make_trace(read_recording([arguments.trace]))
    for policy in find_policies(arguments.policies):
        cpu_start = time.process_time()
        run = run_experiment(trace, policy, arguments.seed)
        line = {
            "benchmark": "experiment",
            "case": policy.name,
            "nodes": len(trace.nodes),
            "seed": run.seed,
            "seconds": run.seconds,
            "cpu_seconds": round(time.process_time() - cpu_start, 2),
            "allocated_percent": run.allocated_percent[100],
            "python": platform.python_version(),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
