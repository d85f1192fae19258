"""Pods with one device claim each that are scheduled per second; the claims have a CEL selector.

    python tests/bench/dra.py [--nodes 1000] [--devices 8] [--pods 1000]

Every node publishes its devices in a ResourceSlice. Pods are compiled and scheduled and their devices reserved, one
after another; the allocation is not written. Prints one JSON line.
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

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.api.scheme import KINDS
from extender.app import wiring
from extender.basics import gc_tuning
from extender.cache.cache import Cache
from extender.cycle.binding_cycle import run_reserve_plugins
from extender.cycle.decision import ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.scheduling_cycle import schedule_pod
from tests.bench.workloads import make_node

DRIVER = "gpu.example.com"
SELECTOR = f'device.attributes["{DRIVER}"].model == "a100" && device.attributes["{DRIVER}"].numa < 2'
V1 = "resource.k8s.io/v1"


def add_object(cache: Cache, kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> None:
    """Add an object of the group resource.k8s.io."""
    meta = {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"}
    raw = {"apiVersion": V1, "kind": kind, "metadata": meta, "spec": spec}
    cache.add_or_update_object(from_builtins(raw, KINDS[V1, kind]))


def make_device(node: int, number: int) -> dict[str, Any]:
    """Make a device; half of the devices are of the requested model, each has a uuid."""
    attributes = {
        "model": {"string": "a100" if number % 2 else "l4"},
        "numa": {"int": number // 4},
        "uuid": {"string": f"gpu-{node}-{number}"},
        "driverVersion": {"version": "1.2.3"},
    }
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "40Gi"}}}


def make_pod(number: int) -> Pod:
    """Make a pod with a claim of its own."""
    container = {"name": "app", "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}}}
    claims = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
    meta = {"name": f"pod-{number}", "namespace": "default", "uid": f"pod-{number}"}
    return from_builtins({"metadata": meta, "spec": {"containers": [container], "resourceClaims": claims}}, Pod)


def make_cluster(nodes: int, devices: int, pods: int) -> Cache:
    """Make a cluster of nodes with devices, a device class, and a claim for each pod."""
    cache = Cache()
    add_object(cache, "DeviceClass", "gpu", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})
    for number in range(nodes):
        node = make_node(number)
        cache.add_or_update_node(node)
        name = node.metadata.name
        node_devices = [make_device(number, index) for index in range(devices)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        add_object(
            cache, "ResourceSlice", name, {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": node_devices}
        )
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": SELECTOR}}],
    }
    for number in range(pods):
        add_object(
            cache,
            "ResourceClaim",
            f"claim-{number}",
            {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
            "default",
        )
    return cache


def measure(nodes: int, devices: int, pods: int) -> dict[str, object]:
    """Run the benchmark once."""
    profile, runtime = wiring.build_setup().first_profile, wiring.make_runtime()
    cache, rng, node_sampler = make_cluster(nodes, devices, pods), Random(1), NodeSampler()
    queue = [make_pod(number) for number in range(pods)]
    gc_tuning.freeze_heap()
    started, cpu_start = time.perf_counter(), time.process_time()
    scheduled = 0
    for pod in queue:
        pod_info = cache.make_pod_info(pod)
        with cache.read() as snapshot:
            decision = schedule_pod(pod_info, snapshot, profile, runtime, rng, node_sampler)
            if isinstance(decision, ScheduleResult):
                error = run_reserve_plugins(
                    pod_info, decision.suggested_host, snapshot, profile, runtime, decision.cycle_state
                )
                scheduled += error is None
        if isinstance(decision, ScheduleResult):
            cache.assume(pod, decision.suggested_host)
    seconds = time.perf_counter() - started
    return {
        "benchmark": "dra",
        "nodes": nodes,
        "devices": nodes * devices,
        "measure": pods,
        "placed": scheduled,
        "seconds": round(seconds, 3),
        "pods_per_s": round(pods / seconds),
        "cpu_ms_per_pod": round((time.process_time() - cpu_start) / pods * 1000, 3),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "python": platform.python_version(),
    }


def main() -> None:
    """Parse the command line, run the benchmark and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8, help="devices per node (8)")
    parser.add_argument("--pods", type=int, default=1000)
    args = parser.parse_args()
    gc_tuning.set_gc_thresholds()
    print(json.dumps(measure(args.nodes, args.devices, args.pods)), flush=True)


if __name__ == "__main__":
    main()
