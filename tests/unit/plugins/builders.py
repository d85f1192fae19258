"""Builders of pods, nodes and snapshots with different resources, and of plugins with their options."""

from collections.abc import Mapping
from typing import Any

from extender.api.codec import from_builtins
from extender.api.kinds.devices import DeviceClass
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, Release
from extender.config.strict_decoding import decode_strict
from extender.framework.plugin_args import PluginArgs

GPU = "example.com/gpu"


def make_pod(requests: Mapping[str, str] | None = None, name: str = "pod", **spec: Any) -> Pod:
    """Return a pod with one container; *spec* overrides its spec, and may have `status`."""
    status = spec.pop("status", {})
    container = {"name": "c", "resources": {"requests": dict(requests or {})}}
    body = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"containers": [container], **spec}}
    return from_builtins({**body, "status": status}, Pod)


def make_node(name: str, **allocatable: str) -> Node:
    """Return a node that allows 110 pods. Underscores stand for hyphens, `gpu` for the extended resource."""
    names = {"gpu": GPU}
    amounts = {names.get(key, key.replace("_", "-")): amount for key, amount in allocatable.items()}
    return from_builtins({"metadata": {"name": name}, "status": {"allocatable": {"pods": "110", **amounts}}}, Node)


def make_device_class(name: str, resource: str | None = None, created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    """Return a device class that backs the extended resource *resource*."""
    spec = {} if resource is None else {"extendedResourceName": resource}
    return from_builtins({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}, DeviceClass)


def make_snapshot(*objects: Node | DeviceClass, requested: Mapping[str, Mapping[str, str]] | None = None) -> Snapshot:
    """Return a snapshot of *objects*, with one pod on each node of *requested* that has those requests."""
    cache = Cache()
    for obj in objects:
        if isinstance(obj, Node):
            cache.add_or_update_node(obj)
        else:
            cache.add_or_update_object(obj)
    for node, requests in (requested or {}).items():
        cache.add_or_update_pod(make_pod(requests, f"on-{node}", nodeName=node))
    return cache.snapshot()


def build_plugin(
    plugin_class: Any,
    args: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
    release: Release = RELEASE_1_36,
) -> Any:
    """Return an instance of *plugin_class* with the options *args*, defaulted and validated."""
    feature_gates = FeatureGates(gates, release)
    options, errors = decode_strict(
        plugin_class.options.apply_defaults(args or {}, feature_gates), plugin_class.options, "args"
    )
    assert options is not None
    assert not errors
    assert not options.validate("args", feature_gates)
    return plugin_class(PluginArgs(options, feature_gates))


def get_option_errors(plugin_class: Any, args: Mapping[str, Any]) -> list[str]:
    """Return the errors of the options *args*."""
    feature_gates = FeatureGates()
    options, errors = decode_strict(
        plugin_class.options.apply_defaults(args, feature_gates), plugin_class.options, "args"
    )
    all_errors = errors if options is None else [*errors, *options.validate("args", feature_gates)]
    return [str(error) for error in all_errors]
