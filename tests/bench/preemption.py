"""How long it takes to decide whom to evict for a pod that fits nowhere: one JSON line a workload.

    python tests/bench/preemption.py [--nodes 5000] [--runs 7] [WORKLOAD ...]

Every node runs four pods of lower priority that leave no room for the pod. In `plain` the pod wants room; in `guarded`
twenty disruption budgets protect the pods and the pod keeps away from three of four of them (required anti-affinity,
by host name); in `spread` it is spread over zones and hosts. Each is decided with the default options, which stop at
a tenth of the nodes, and with every node tried.
"""

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender import wiring
from extender.basics import collector
from extender.cluster.state import ClusterState
from extender.decide.cycle import decide
from extender.decide.decision import Unplaced
from extender.decide.sampling import Search
from extender.objects.codec import from_builtins
from extender.objects.pod import Pod
from extender.objects.policy import PodDisruptionBudget
from tests.bench.named import all_known
from tests.bench.workloads import HOST, NAMESPACE, ZONE, a_node

BUDGETS = 20
APART = {"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["0", "1", "2"]}]}}
TIER = {"labelSelector": {"matchLabels": {"tier": "1"}}}
SPREAD = [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **TIER} for key in (ZONE, HOST)]
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "guarded": {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**APART, "topologyKey": HOST}]}
        }
    },
    "spread": {"topologySpreadConstraints": SPREAD},
}


def _pod(name: str, cpu: str, labels: dict[str, str], **spec: Any) -> Pod:
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    started = f"2026-01-01T00:00:{sum(map(ord, name)) % 60:02}Z"
    return from_builtins(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "labels": labels},
            "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec},
            "status": {"startTime": started},
        },
        Pod,
    )


def _cluster(nodes: int, *, guarded: bool) -> ClusterState:
    state = ClusterState()
    for number in range(nodes):
        state.put_node(a_node(number))
        for tier in range(4):
            labels = {"tier": str(tier), "app": f"app-{number % BUDGETS}"}
            state.put_pod(_pod(f"low-{number}-{tier}", "900m", labels, nodeName=f"node-{number}", priority=tier))
    for number in range(BUDGETS if guarded else 0):
        body = {
            "metadata": {"name": f"budget-{number}", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": f"app-{number}"}}},
            "status": {"disruptionsAllowed": number % 3},
        }
        state.put_object(from_builtins(body, PodDisruptionBudget))
    return state


def measure(workload: str, nodes: int, runs: int, *, every: bool) -> dict[str, object]:
    """One workload, decided *runs* times on the same cluster."""
    arguments = {"minCandidateNodesPercentage": 100} if every else {}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]}],
    }
    profile, engine = wiring.from_builtins(config, "bench").first, wiring.engine()
    state = _cluster(nodes, guarded=workload == "guarded")
    pod = _pod("high", "2", {"app": "high", "tier": "1"}, priority=1000, **SPECS[workload])
    collector.settle()
    times = []
    for run in range(runs):
        cluster = state.snapshot()
        started = time.perf_counter()
        decision = decide(cluster.query(pod), cluster, profile, engine, Random(run), Search())
        times.append((time.perf_counter() - started) * 1000)
        if not isinstance(decision, Unplaced) or not decision.details.get("DefaultPreemption"):
            raise SystemExit(f"{workload}: want a plan, got {decision}")
    plan = decision.details["DefaultPreemption"]
    return {
        "benchmark": "preemption",
        "workload": workload,
        "nodes": nodes,
        "every_node": every,
        "candidates": len(plan.candidates),
        "victims": len(plan.chosen.victims),
        "first_ms": round(times[0], 1),
        "p50_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=7, help="times each is decided (7)")
    args = parser.parse_args()
    collector.look_seldom()
    all_known(parser, "workload", args.workloads, SPECS)
    for workload in args.workloads or SPECS:
        for every in (False, True):
            print(json.dumps(measure(workload, args.nodes, args.runs, every=every)), flush=True)


if __name__ == "__main__":
    main()
