"""Questions about a live cluster from a cold start, with a view-only role: one JSON line per question.

    python tests/bench/live.py [explain|fits ...] [--nodes 300] [--pods 3000] [--runs 5] [--cluster-capacity PROGRAM]

`explain` explains one waiting pod; its line has the requests in the audit log of the API server. `fits` counts the
copies of a pod of 500m; with `--cluster-capacity`, that program counts them too, on the same cluster. It is built from
kubernetes-sigs/cluster-capacity.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.startup import cache_compiled_modules, run_command
from tests.controlplane import programs
from tests.controlplane.control_plane import EXTENDER, ControlPlane
from tests.controlplane.scheduler_processes import create_all, make_nodes, make_pods
from tests.controlplane.test_ask_live_cluster import audit_size
from tests.controlplane.view_only_role import AUDIT_POLICY, grant_view_only_role

QUESTIONS = ("explain", "fits")
COPIED_POD = {  # cluster-capacity wants the fields that an API server sets
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "copied", "namespace": "default"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "app",
                "resources": {"requests": {"cpu": "500m"}},
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}


@contextmanager
def run_audited_cluster(nodes: int, pods: int) -> Iterator[ControlPlane]:
    """Run an API server that audits our requests, with nodes, placed pods and one waiting pod."""
    used = programs.find()
    if isinstance(used, str):
        raise SystemExit(used)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        policy = Path(folder) / "policy.json"
        policy.write_text(json.dumps(AUDIT_POLICY))
        plane = ControlPlane(used, Path(folder), f"--audit-policy-file={policy}")
        try:
            plane.start()
            with plane.client() as api:
                grant_view_only_role(api)
                create_all(api, make_nodes(nodes))
                placed_pods = make_pods("placed", pods)
                for number, pod in enumerate(placed_pods):
                    pod["spec"] = {**pod["spec"], "nodeName": f"node-{number % nodes}"}
                create_all(api, placed_pods)
                create_all(api, make_pods("waiting", 1, cpu="64"))
            yield plane
        finally:
            plane.stop()


def count_requests(plane: ControlPlane, since: int) -> dict[str, int]:
    """Return the number of our requests by verb and resource since byte *since* of the audit log."""
    events = [json.loads(line) for line in plane.audit_log.read_bytes()[since:].splitlines()]
    names = (f"{event['verb']} {event.get('objectRef', {}).get('resource', event['requestURI'])}" for event in events)
    return dict(sorted(Counter(names).items()))


def time_command(runs: int, *arguments: str) -> dict[str, float]:
    """Run a command of extender once to compile its modules, then *runs* times; return the medians."""
    run_command(*arguments)
    times = [run_command(*arguments) for _ in range(runs)]
    return {
        "seconds": round(median(seconds for seconds, _ in times), 3),
        "best_seconds": round(min(times)[0], 3),
        "cpu_seconds": round(median(cpu for _, cpu in times), 3),
    }


def measure_explain(plane: ControlPlane, runs: int) -> dict[str, Any]:
    """Explain the waiting pod, with the kubeconfig of the view-only user."""
    arguments = ("explain", "waiting-0", f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}")
    since = audit_size(plane)
    run_command(*arguments)
    requests = count_requests(plane, since)
    return {"question": "explain", **time_command(runs, *arguments), "requests": requests}


def measure_fits(plane: ControlPlane, runs: int, cluster_capacity: str) -> dict[str, Any]:
    """Count the copies of a pod that fit, and let cluster-capacity count them."""
    kubeconfig = plane.write_kubeconfig()
    pod = plane.folder / "copied.json"
    pod.write_text(json.dumps(COPIED_POD))
    arguments = ("fits", "-p", str(pod), f"--kubeconfig={kubeconfig}", "-o", "json")
    words = [sys.executable, "-m", "extender", *arguments]
    answer = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    line = {"question": "fits", **time_command(runs, *arguments), "fits": answer["fits"]}
    if cluster_capacity:
        words = [cluster_capacity, f"--kubeconfig={kubeconfig}", f"--podspec={pod}", "--verbose"]
        started = time.perf_counter()
        result = subprocess.run(words, capture_output=True, text=True, check=True)
        line["cluster_capacity_seconds"] = round(time.perf_counter() - started, 3)
        match = re.search(r"schedule (\d+) instance", result.stdout)
        if match is None:
            raise SystemExit(f"cluster-capacity names no number:\n{result.stdout[:1000]}")
        line["cluster_capacity_fits"] = int(match.group(1))
    return line


def main() -> None:
    """Parse the command line and ask the questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", help=f"of {', '.join(QUESTIONS)}; all if none is named"
    )
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=5, help="measured runs per question (5)")
    parser.add_argument("--cluster-capacity", default="", metavar="PROGRAM", help="cluster-capacity, for fits")
    args = parser.parse_args()
    questions = check_names(parser, "question", args.questions, QUESTIONS) or QUESTIONS
    with cache_compiled_modules(), run_audited_cluster(args.nodes, args.pods) as plane:
        for question in questions:
            line = (
                measure_explain(plane, args.runs)
                if question == "explain"
                else measure_fits(plane, args.runs, args.cluster_capacity)
            )
            head = {"benchmark": "live", "nodes": args.nodes, "pods": args.pods}
            print(json.dumps({**head, **line, "python": platform.python_version()}), flush=True)


if __name__ == "__main__":
    main()
