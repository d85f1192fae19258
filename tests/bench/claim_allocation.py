"""Allocates the claims of a benchmark on nodes at random, without pods, as scheduler_perf does.

Source: test/integration/scheduler_perf/dra.go, allocResourceClaimsOp.run (1.37).
"""

import uuid
from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from extender.api.codec import encode, from_builtins
from extender.api.kinds.devices import DeviceClass, ResourceClaim, ResourceSlice
from extender.api.kinds.node import Node
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import find_release
from extender.dra.allocation_results import build_allocation_results
from extender.dra.allocator import Allocator
from extender.dra.features import Features
from tests.bench.harness import BulkClient
from tests.controlplane.programs import RELEASE

_API = "/apis/resource.k8s.io/v1"


async def _read_cluster(client: BulkClient) -> tuple[Cache, list[Node]]:
    """Return a cache with the nodes, classes and slices, and the nodes."""
    cache = Cache()
    nodes = [from_builtins(item, Node) for item in (await client.call("GET", "/api/v1/nodes"))["items"]]
    for node in nodes:
        cache.add_or_update_node(node)
    for path, kind in (("deviceclasses", DeviceClass), ("resourceslices", ResourceSlice)):
        for item in (await client.call("GET", f"{_API}/{path}"))["items"]:
            cache.add_or_update_object(from_builtins(item, kind))
    return cache, nodes


async def allocate_claims(client: BulkClient, namespace: str, gates: Mapping[str, bool]) -> int:
    """Allocate all claims of *namespace*, and return the number of those that fit on no node.

    *gates* are the feature gates that differ from the default.
    """
    release = find_release(RELEASE)
    assert release is not None
    features, rng = Features(FeatureGates(gates, release)), Random(1)
    allocator = Allocator(features, SystemClock())
    cache, nodes = await _read_cluster(client)
    path, failed_count = f"{_API}/namespaces/{namespace}/resourceclaims", 0
    for item in (await client.call("GET", path))["items"]:
        claim = from_builtins(item, ResourceClaim)
        rng.shuffle(nodes)
        with cache.read() as snapshot:
            allocator.sync(snapshot)
            claims = allocator.prepare([claim])
            allocations = ((node, allocator.allocate(claims, node)) for node in nodes)
            node, allocation = next((each for each in allocations if each[1] is not None), (None, None))
        if node is None or allocation is None:
            failed_count += 1
            continue
        name = node.metadata.name
        (result,) = build_allocation_results((claim,), allocation, name, features, lambda: str(uuid.uuid4()))
        body: dict[str, Any] = {"status": {"allocation": msgspec.json.decode(encode(result))}}
        claim_path = f"{path}/{claim.metadata.name}/status"
        updated = await client.call("PATCH", claim_path, body, kind="application/merge-patch+json")
        cache.add_or_update_object(from_builtins(updated, ResourceClaim))
    return failed_count
