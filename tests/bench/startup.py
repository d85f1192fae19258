"""Start-up times of commands, with compiled modules as after an installation: one JSON line per command.

    python tests/bench/startup.py [version|explain|schedule ...] [--runs 7]

`version` is `extender --version`. `explain` explains the only pod of a cluster with one node. `schedule` is the time
from the start of `extender schedule` until it is ready, on an empty cluster of a real control plane.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.harness import cpu_seconds, run_control_plane
from tests.controlplane.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("version", "explain", "schedule")
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: one}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, resources: {requests: {cpu: "9"}}}]}}
"""

Times = tuple[float, float]
"""The wall-clock seconds and the CPU seconds of one run."""


@contextmanager
def cache_compiled_modules() -> Iterator[Path]:
    """Let the started processes write compiled modules into a folder outside of the sources; yield the folder."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        yield Path(folder)


def run_command(*arguments: str) -> Times:
    """Run a command until it ends."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before, started = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "extender", *arguments], env=environment, stdout=subprocess.DEVNULL, check=True
    )
    seconds, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, cpu


def run_schedule(plane: ControlPlane) -> Times:
    """Start the standalone scheduler, and stop it when it is ready."""
    started = time.perf_counter()
    process = plane.start_extender(
        {"clientConnection": {"kubeconfig": str(plane.write_kubeconfig("system:kube-scheduler"))}}
    )
    while "the cache of the scheduler is synced" not in process.output():
        process.pause(0.01)
        if time.perf_counter() - started > 60:
            raise SystemExit(f"the scheduler does not become ready:\n{process.tail()}")
    times = time.perf_counter() - started, cpu_seconds(process.pid)
    plane.stop_program(process)
    return times


def measure(command: str, runs: int, run: Callable[[], Times]) -> None:
    """Run a command once to compile its modules and *runs* times to measure it; print the line."""
    run()
    times = [run() for _ in range(runs)]
    line = {
        "benchmark": "startup", "command": command, "runs": runs,
        "seconds": round(median(seconds for seconds, _ in times), 3), "best_seconds": round(min(times)[0], 3),
        "cpu_seconds": round(median(cpu for _, cpu in times), 3), "python": platform.python_version(),
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def main() -> None:
    """Parse the command line and run the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "commands", nargs="*", metavar="COMMAND", help=f"of {', '.join(COMMANDS)}; all if none is named"
    )
    parser.add_argument("--runs", type=int, default=7, help="measured runs per command (7)")
    args = parser.parse_args()
    commands = check_names(parser, "command", args.commands, COMMANDS) or COMMANDS
    with cache_compiled_modules() as folder:
        if "version" in commands:
            measure("version", args.runs, lambda: run_command("--version"))
        if "explain" in commands:
            cluster = folder / "cluster.yaml"
            cluster.write_text(CLUSTER)
            measure("explain", args.runs, lambda: run_command("explain", "-f", str(cluster)))
        if "schedule" in commands:
            with run_control_plane() as plane:
                measure("schedule", args.runs, lambda: run_schedule(plane))


if __name__ == "__main__":
    main()
