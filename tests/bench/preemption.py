"""Time of a preemption decision for a pod that fits no node: one JSON line per workload.

    python tests/bench/preemption.py [--nodes 5000] [--runs 7] [WORKLOAD ...]

Every node runs four pods of lower priority and has too few free resources for the pod. In `plain` the pod only
requests resources; in `guarded` twenty disruption budgets protect the running pods, and the pod has required
anti-affinity to three of four of them; in `spread` it has hard topology spread constraints on zones and hosts. Each is
measured with the default options, which try a tenth of the nodes, and with all nodes tried.
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

from extender.api.codec import from_builtins
from extender.api.kinds.disruption import PodDisruptionBudget
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.cycle.decision import ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from tests.bench.arguments import check_names
from tests.bench.workloads import HOST, NAMESPACE, ZONE, make_node

BUDGETS = 20
ANTI_AFFINITY_SELECTOR = {
    "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["0", "1", "2"]}]}
}
TIER_SELECTOR = {"labelSelector": {"matchLabels": {"tier": "1"}}}
SPREAD_CONSTRAINTS = [
    {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **TIER_SELECTOR} for key in (ZONE, HOST)
]
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "guarded": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{**ANTI_AFFINITY_SELECTOR, "topologyKey": HOST}]
            }
        }
    },
    "spread": {"topologySpreadConstraints": SPREAD_CONSTRAINTS},
}


def _make_pod(name: str, cpu: str, labels: dict[str, str], **spec: Any) -> Pod:
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


def _make_cluster(nodes: int, *, guarded: bool) -> Cache:
    cache = Cache()
    for number in range(nodes):
        cache.add_or_update_node(make_node(number))
        for tier in range(4):
            labels = {"tier": str(tier), "app": f"app-{number % BUDGETS}"}
            cache.add_or_update_pod(
                _make_pod(f"low-{number}-{tier}", "900m", labels, nodeName=f"node-{number}", priority=tier)
            )
    for number in range(BUDGETS if guarded else 0):
        body = {
            "metadata": {"name": f"budget-{number}", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": {"app": f"app-{number}"}}},
            "status": {"disruptionsAllowed": number % 3},
        }
        cache.add_or_update_object(from_builtins(body, PodDisruptionBudget))
    return cache


def measure(workload: str, nodes: int, runs: int, *, all_nodes: bool) -> dict[str, object]:
    """Run a workload *runs* times on the same cluster."""
    arguments = {"minCandidateNodesPercentage": 100} if all_nodes else {}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]}],
    }
    profile, runtime = wiring.build_setup_from_document(config, "bench").first_profile, wiring.make_runtime()
    cache = _make_cluster(nodes, guarded=workload == "guarded")
    pod = _make_pod("high", "2", {"app": "high", "tier": "1"}, priority=1000, **SPECS[workload])
    gc_tuning.freeze_heap()
    times: list[float] = []
    preemption: Any = None
    for run in range(runs):
        snapshot = cache.snapshot()
        started = time.perf_counter()
        decision = schedule_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime, Random(run), NodeSampler())
        times.append((time.perf_counter() - started) * 1000)
        plans = decision.post_filter_plans if isinstance(decision, ScheduleFailure) else {}
        if not (preemption := plans.get("DefaultPreemption")):
            raise SystemExit(f"{workload}: expected a preemption, got {decision}")
    return {
        "benchmark": "preemption",
        "workload": workload,
        "nodes": nodes,
        "every_node": all_nodes,
        "candidates": len(preemption.candidates),
        "victims": len(preemption.best_candidate.victims),
        "first_ms": round(times[0], 1),
        "p50_ms": round(statistics.median(times), 1),
        "max_ms": round(max(times), 1),
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line and run the workloads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(SPECS)}; all if none is named")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=7, help="runs per workload (7)")
    args = parser.parse_args()
    gc_tuning.set_gc_thresholds()
    check_names(parser, "workload", args.workloads, SPECS)
    for workload in args.workloads or SPECS:
        for all_nodes in (False, True):
            print(json.dumps(measure(workload, args.nodes, args.runs, all_nodes=all_nodes)), flush=True)


if __name__ == "__main__":
    main()
