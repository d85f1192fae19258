"""Node resources that devices are and need, since 1.37 (gate DRANodeAllocatableResources).

Source: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go (1.37).
"""

from typing import Any

import pytest

from extender.api.kinds.pod import NodeAllocatableResourceClaimStatus, Pod
from extender.api.requests import PodResourcesOptions, pod_requests
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.node_allocatable import find_exceeded_pod_level_limit
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import make_cluster, make_node, make_pod, make_pod_info
from tests.unit.dra.builders import make_allocated_claim, make_claim, make_device_class, make_slice

ON = FeatureGates({"DRANodeAllocatableResources": True}, RELEASE_1_37)
STATUS = {
    "resourceClaimName": "one",
    "containers": ["first", "app"],
    "mapping": [{"name": "cpu", "quantity": "2"}],
    "overhead": [{"name": "memory", "perPod": "100", "perContainer": "10"}, {"name": "cpu", "perContainer": "1"}],
}


def resources(**by_name: Any) -> dict[str, Any]:
    return {"nodeAllocatableResources": by_name}


def make_pod_with_claim(name: str = "one", *, containers: tuple[str, ...] = ("first", "app"), **spec: Any) -> Pod:
    used = [{"name": each, "resources": {"claims": [{"name": "entry"}]}} for each in containers]
    claims = [{"name": "entry", "resourceClaimName": name}]
    return make_pod("pod", spec={"containers": [*used, {"name": "other"}], "resourceClaims": claims, **spec})


def filtered(claim: Any, devices: Any, pod: Pod | None = None) -> tuple[list[Reason], tuple[Any, ...]]:
    """Return the reasons of Filter on the node `n` with 4 CPUs, and the resources that the pod takes there."""
    cache = make_cluster(
        make_node("n", allocatable={"cpu": "4", "memory": "1000", "pods": "10"}),
        *(make_device_class("gpu"), make_slice({"node": "n", "devices": devices}), claim),
        gates=ON,
    )
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs("10s", "10m0s"), ON))
    pod_info, snapshot = make_pod_info(pod or make_pod_with_claim(), cache), cache.snapshot()
    state = plugin.pre_filter(pod_info, snapshot).state
    rejections = plugin.filter(pod_info, snapshot.view(), state)
    assumed = plugin.make_assumed_pod(pod_info.pod, "n", state)
    return [rejection.reason for rejection in rejections], assumed.status.node_allocatable_resource_claim_statuses


def test_mapping_and_overhead_are_summed_by_resource() -> None:
    devices = {
        "d0": resources(cpu={"mapping": {"deviceMultiplier": "1500m"}}, memory={"overhead": {"perPod": "100"}}),
        "d1": resources(cpu={"mapping": {"deviceMultiplier": "500m"}, "overhead": {"perContainer": "1"}}),
    }
    status = {
        "resource_claim_name": "one",
        "containers": ("first", "app"),
        "mapping": (("cpu", "2"),),
        "overhead": (("cpu", None, "1"), ("memory", "100", None)),
    }
    reasons, (found,) = filtered(make_claim("one", {"r": {"count": 2}}), devices)
    assert reasons == []
    assert status == {
        "resource_claim_name": found.resource_claim_name,
        "containers": found.containers,
        "mapping": tuple((mapped.name, mapped.quantity) for mapped in found.mapping),
        "overhead": tuple((each.name, each.per_pod, each.per_container) for each in found.overhead),
    }


def test_a_claim_without_containers_takes_no_resources_per_container() -> None:
    devices = {"d0": resources(cpu={"overhead": {"perContainer": "9"}})}
    reasons, (found,) = filtered(make_claim("one", {"r": {}}), devices, make_pod_with_claim(containers=()))
    assert (reasons, found.containers) == ([], ())
    assert [reason.text for reason in filtered(make_claim("one", {"r": {}}), devices)[0]] == ["Insufficient cpu"]


@pytest.mark.parametrize(
    ("device", "users", "texts"),
    [
        pytest.param({"overhead": {"perPod": "3"}}, ["other"], [], id="an overhead may be shared"),
        pytest.param({"overhead": {"perPod": "5"}}, ["other"], ["Insufficient cpu"], id="a shared overhead counts"),
        pytest.param(
            {"mapping": {"deviceMultiplier": "1"}},
            ["other"],
            ["node allocatable resource claim one has a mapped device and cannot be shared across pods"],
            id="a mapped device may not be shared",
        ),
        pytest.param({"mapping": {"deviceMultiplier": "1"}}, ["uid-default-pod"], [], id="it is reserved for the pod"),
        pytest.param({"mapping": {"deviceMultiplier": "1"}}, [], [], id="it is not reserved"),
    ],
)
def test_an_allocated_claim_counts_too(device: Any, users: list[str], texts: list[str]) -> None:
    reserved_for = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    claim = make_allocated_claim("one", ["d0"], reservedFor=reserved_for)
    reasons, _ = filtered(claim, {"d0": resources(cpu=device)})
    assert [reason.text for reason in reasons] == texts
    assert all(reason.code is Code.UNRESOLVABLE for reason in reasons)


def test_the_requests_of_a_pod_include_mapping_and_overhead() -> None:
    """Source: component-helpers/resource/helpers.go, addDRANodeAllocatableClaimResources (1.37)."""
    pod = make_pod("pod", status={"nodeAllocatableResourceClaimStatuses": [STATUS]})
    assert isinstance(pod.status.node_allocatable_resource_claim_statuses[0], NodeAllocatableResourceClaimStatus)
    assert pod_requests(pod, PodResourcesOptions(dra_node_allocatable=True)) == {"cpu": 4000, "memory": 120}


@pytest.mark.parametrize(
    ("limits", "pod_limits", "reason"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "4"}, None, id="4 CPUs suffice: limit, mapping and one container"),
        pytest.param(
            {"cpu": "1500m"},
            {"cpu": "4"},
            "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container app",
            id="the limit of the container is too high",
        ),
        pytest.param({"cpu": "9"}, {"memory": "1"}, None, id="only resources with both limits are compared"),
        pytest.param(
            {"hugepages-2Mi": "4Mi"},
            {"hugepages-2Mi": "2Mi"},
            "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container and "
            "node-allocatable DRA limits",
            id="huge pages are summed",
        ),
    ],
)
def test_a_pod_level_limit_covers_the_resources_of_claims(
    limits: dict[str, str], pod_limits: dict[str, str], reason: str | None
) -> None:
    spec = {"containers": [{"name": "app", "resources": {"limits": limits}}], "resources": {"limits": pod_limits}}
    pod = make_pod("pod", spec=spec, status={"nodeAllocatableResourceClaimStatuses": [STATUS]})
    assert find_exceeded_pod_level_limit(pod) == reason
