"""Clusters of nodes that differ in what they offer and what is taken of it, for the plugins that look at resources."""

from collections.abc import Mapping
from typing import Any

from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.config.strict import decode_strict
from extender.framework.setup import Setup
from extender.objects.codec import from_builtins
from extender.objects.devices import DeviceClass
from extender.objects.node import Node
from extender.objects.pod import Pod

GPU = "example.com/gpu"


def a_pod(requests: Mapping[str, str] | None = None, name: str = "pod", **spec: Any) -> Pod:
    """A pod with one container; *spec* is laid over its spec, `status` goes beside it."""
    status = spec.pop("status", {})
    container = {"name": "c", "resources": {"requests": dict(requests or {})}}
    body = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"containers": [container], **spec}}
    return from_builtins({**body, "status": status}, Pod)


def a_node(name: str, **allocatable: str) -> Node:
    """A node that takes 110 pods; underscores stand for hyphens, `gpu` for the extended resource."""
    names = {"gpu": GPU}
    offered = {names.get(key, key.replace("_", "-")): amount for key, amount in allocatable.items()}
    return from_builtins({"metadata": {"name": name}, "status": {"allocatable": {"pods": "110", **offered}}}, Node)


def a_class(name: str, serves: str | None = None, created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    """A device class, and the extended resource it serves."""
    spec = {} if serves is None else {"extendedResourceName": serves}
    return from_builtins({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)


def a_cluster(*things: Node | DeviceClass, taken: Mapping[str, Mapping[str, str]] | None = None) -> Snapshot:
    """*things*, and on each node of *taken* one pod with those requests."""
    state = ClusterState()
    for thing in things:
        if isinstance(thing, Node):
            state.put_node(thing)
        else:
            state.put_object(thing)
    for node, requests in (taken or {}).items():
        state.put_pod(a_pod(requests, f"on-{node}", nodeName=node))
    return state.snapshot()


def built(plugin: Any, args: Mapping[str, Any] | None = None, gates: Mapping[str, bool] | None = None) -> Any:
    """*plugin* as the configuration builds it."""
    switched = FeatureGates(gates)
    options, faults = decode_strict(plugin.options.defaulted(args or {}, switched), plugin.options, "args")
    assert options is not None
    assert not faults
    assert not options.faults("args", switched)
    return plugin(Setup(options, switched))


def faults_of(plugin: Any, args: Mapping[str, Any]) -> list[str]:
    """What the configuration says is wrong with *args*."""
    switched = FeatureGates()
    options, faults = decode_strict(plugin.options.defaulted(args, switched), plugin.options, "args")
    found = faults if options is None else [*faults, *options.faults("args", switched)]
    return [str(fault) for fault in found]
