"""PreFilter with claims that earlier attempts created for extended resources."""

from typing import Any

import pytest

from extender.api.kinds.meta import ObjectMeta
from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import make_claim, make_device_class

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"


def make_extended_claim(name: str, uid: str, *, annotation: str = "true", controller: bool = True) -> Any:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": uid, "uid": uid, "controller": controller}
    return make_claim(name, {}, metadata={"annotations": {ANNOTATION: annotation}, "ownerReferences": [owner]})


def test_only_the_claim_that_was_created_for_the_pod_is_used_again() -> None:
    cache = make_cluster(
        make_node("n"),
        make_device_class("served", extendedResourceName="example.com/gpu"),
        make_claim("plain", {}),
        make_extended_claim("of-another-pod", "other"),
        make_extended_claim("owned", "uid-default-pod", controller=False),
        make_extended_claim("not-marked", "uid-default-pod", annotation="false"),
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs(), FeatureGates({"DRAExtendedResource": True})))
    pod = make_pod_info(make_pod(requests={"example.com/gpu": "1"}), cache)

    def find_claim() -> str:
        with cache.read() as snapshot:
            name: str = plugin.pre_filter(pod, snapshot).state.extended_resource_claim.metadata.name
            return name

    assert find_claim() == "<extended-resources>"
    claim = make_extended_claim("existing", "uid-default-pod")
    cache.add_or_update_object(claim)
    assert find_claim() == "existing"
    cache.remove_object(type(claim), claim.key)
    assert find_claim() == "<extended-resources>"


def test_an_attempt_reads_only_the_claims_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    read_names: list[str] = []
    get_controller: Any = ObjectMeta.controller

    def record_and_get(meta: ObjectMeta) -> Any:
        read_names.append(meta.name)
        return get_controller.fget(meta)

    cache = make_cluster(
        make_node("n"),
        make_device_class("served", extendedResourceName="example.com/gpu"),
        *(make_extended_claim(f"c{number}", f"pod-{number}") for number in range(50)),
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs(), FeatureGates({"DRAExtendedResource": True})))
    pod = make_pod_info(make_pod(requests={"example.com/gpu": "1"}), cache)
    with cache.read() as snapshot:
        plugin.pre_filter(pod, snapshot)
    monkeypatch.setattr(ObjectMeta, "controller", property(record_and_get))
    cache.add_or_update_object(make_extended_claim("new", "other"))
    with cache.read() as snapshot:
        plugin.pre_filter(pod, snapshot)
    assert set(read_names) == {"new"}
