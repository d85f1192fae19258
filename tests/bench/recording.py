"""A recording of a large cluster for the benchmarks of planning: nodes in ten zones, and pods of Deployments.

python tests/bench/recording.py --nodes 5000 --pods 50000 cluster.json.gz
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.workloads import node_body

PODS_PER_DEPLOYMENT = 25
_CPU = ("50m", "100m", "200m", "250m", "400m")
_MEMORY = ("64Mi", "128Mi", "512Mi", "1Gi")


def make_items(nodes: int, pods: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the nodes, then the pods. Each Deployment has 25 pods and a budget; each node has a DaemonSet's pod."""
    rng = Random(seed)
    for number in range(nodes):
        yield {"apiVersion": "v1", "kind": "Node", **node_body(number)}
        yield make_pod(f"agent-{number}", "agent", "DaemonSet", f"node-{number}", "50m", "64Mi")
    for number in range(pods - nodes):
        app = number // PODS_PER_DEPLOYMENT
        size = Random(app)
        node = f"node-{rng.randrange(nodes)}"
        cpu, memory = size.choice(_CPU), size.choice(_MEMORY)
        yield make_pod(f"app-{app}-{number % PODS_PER_DEPLOYMENT}", f"app-{app}", "ReplicaSet", node, cpu, memory)
        if number % PODS_PER_DEPLOYMENT == 0:
            yield make_budget(f"app-{app}")


def make_pod(name: str, owner: str, kind: str, node: str, cpu: str, memory: str) -> dict[str, Any]:
    """Make a running pod with a controller."""
    meta = {"name": name, "namespace": "bench", "uid": f"uid-{name}", "labels": {"app": owner}}
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "main", "image": f"registry.example.com/{owner}:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "ownerReferences": [reference]},
        "spec": {"nodeName": node, "containers": [container], "schedulerName": "default-scheduler"},
        "status": {"phase": "Running"},
    }


def make_budget(app: str) -> dict[str, Any]:
    """Make a budget that allows the disruption of three pods of *app*."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "bench"},
        "spec": {"maxUnavailable": 3, "selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": 3, "currentHealthy": 25, "desiredHealthy": 22, "expectedPods": 25},
    }


def write_recording(file: Path, nodes: int, pods: int, seed: int = 1) -> None:
    """Write the cluster as a List, gzipped if the name of *file* ends in `.gz`."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(make_items(nodes, pods, seed))}).encode()
    file.write_bytes(gzip.compress(text, 1) if file.suffix == ".gz" else text)


def main() -> None:
    """Parse the command line and write the recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000, help="at least as many as nodes (50000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.pods < args.nodes:
        parser.error(f"--pods {args.pods}; want at least --nodes {args.nodes}, because each node has a DaemonSet's pod")
    write_recording(args.file, args.nodes, args.pods, args.seed)


if __name__ == "__main__":
    main()
