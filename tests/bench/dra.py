"""How many pods a second that claim devices are decided, each with a claim of its own and a CEL selector.

    python tests/bench/dra.py [--nodes 1000] [--devices 8] [--pods 1000]

Every node publishes its devices in a ResourceSlice. A pod is compiled, decided, and its devices are reserved, one
after another; writing the allocation is left out. Prints one JSON line.
"""

import argparse
import json
import platform
import resource
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extender import wiring
from extender.basics import collector
from extender.cluster.state import ClusterState
from extender.decide.committing import reserve
from extender.decide.cycle import decide
from extender.decide.decision import Placed
from extender.decide.sampling import Search
from extender.objects.codec import from_builtins
from extender.objects.kinds import KINDS
from extender.objects.pod import Pod
from tests.bench.workloads import a_node

DRIVER = "gpu.example.com"
SELECTOR = f'device.attributes["{DRIVER}"].model == "a100" && device.attributes["{DRIVER}"].numa < 2'
V1 = "resource.k8s.io/v1"


def put(state: ClusterState, kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> None:
    """Add an object of the group of dynamic resources."""
    meta = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"}
    raw = {"apiVersion": V1, "kind": kind, "metadata": meta, "spec": spec}
    state.put_object(from_builtins(raw, KINDS[V1, kind]))


def device(node: int, number: int) -> dict[str, Any]:
    """A device; half of them are of the wanted model, all have an identity of their own."""
    attributes = {
        "model": {"string": "a100" if number % 2 else "l4"},
        "numa": {"int": number // 4},
        "uuid": {"string": f"gpu-{node}-{number}"},
        "driverVersion": {"version": "1.2.3"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "40Gi"}}}


def waiting(number: int) -> Pod:
    """A pod with a claim of its own."""
    container = {"name": "app", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}
    claims = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
    meta = {"name": f"pod-{number}", "namespace": "default", "uid": f"pod-{number}"}
    return from_builtins({"metadata": meta, "spec": {"containers": [container], "resourceClaims": claims}}, Pod)


def cluster(nodes: int, devices: int, pods: int) -> ClusterState:
    """Nodes with devices, a class, and a claim for each pod."""
    state = ClusterState()
    put(state, "DeviceClass", "gpu", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})
    for number in range(nodes):
        node = a_node(number)
        state.put_node(node)
        name = node.metadata.name
        offered = [device(number, each) for each in range(devices)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        put(state, "ResourceSlice", name, {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": offered})
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": SELECTOR}}],
    }
    for number in range(pods):
        put(
            state,
            "ResourceClaim",
            f"claim-{number}",
            {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            "default",
        )
    return state


def measure(nodes: int, devices: int, pods: int) -> dict[str, object]:
    """One run."""
    profile, engine = wiring.scheduling().first, wiring.engine()
    state, chance, search = cluster(nodes, devices, pods), Random(1), Search()
    queue = [waiting(number) for number in range(pods)]
    collector.settle()
    started, cpu = time.perf_counter(), time.process_time()
    placed = 0
    for pod in queue:
        snapshot = state.snapshot()
        query = snapshot.query(pod)
        decision = decide(query, snapshot, profile, engine, chance, search)
        if isinstance(decision, Placed):
            refused = reserve(query, decision.node, snapshot, profile, engine, decision.notes)
            placed += refused is None
        del snapshot, query
        if isinstance(decision, Placed):
            state.assume(pod, decision.node)
    seconds = time.perf_counter() - started
    return {
        "benchmark": "dra",
        "nodes": nodes,
        "devices": nodes * devices,
        "measure": pods,
        "placed": placed,
        "seconds": round(seconds, 3),
        "pods_per_s": round(pods / seconds),
        "cpu_ms_per_pod": round((time.process_time() - cpu) / pods * 1000, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8, help="of each node (8)")
    parser.add_argument("--pods", type=int, default=1000)
    args = parser.parse_args()
    collector.look_seldom()
    print(json.dumps(measure(args.nodes, args.devices, args.pods)), flush=True)


if __name__ == "__main__":
    main()
