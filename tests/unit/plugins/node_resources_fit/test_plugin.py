"""The filter of NodeResourcesFit.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, computePodResourceRequest, fitsRequest, Fit.Filter
(1.36).
"""

from typing import Any

import numpy as np
import pytest

from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.config.releases import RELEASE_1_36
from extender.framework.status import Code
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.unit.plugins.builders import GPU, build_plugin, make_device_class, make_node, make_pod, make_snapshot

INSUFFICIENT, UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def rejections(plugin: Any, pod: Pod, snapshot: Snapshot, rows: list[int] | None = None) -> dict[str, dict[str, Code]]:
    pod_info = snapshot.make_pod_info(pod)
    result = plugin.pre_filter(pod_info, snapshot)
    assert result.status is None
    view = snapshot.view(None if rows is None else np.array(rows))
    reasons_by_node: dict[str, dict[str, Code]] = {}
    for mask, reason in plugin.filter(pod_info, view, result.state):
        for position in np.flatnonzero(mask):
            reasons_by_node.setdefault(view.names[position], {})[reason.text] = reason.code
    return reasons_by_node


NODE = {"cpu": "4", "memory": "1000", "ephemeral_storage": "100", "gpu": "2", "hugepages_2Mi": "4Mi"}
REQUESTED = {"cpu": "3", "memory": "600", "ephemeral-storage": "60", GPU: "1", "hugepages-2Mi": "2Mi"}

CASES: dict[str, tuple[dict[str, str], dict[str, Code]]] = {
    "a pod without requests fits": ({}, {}),
    "all that is free may be requested": (
        {"cpu": "1", "memory": "400", "ephemeral-storage": "40", GPU: "1", "hugepages-2Mi": "2Mi"},
        {},
    ),
    "one milli-cpu too many is too many": ({"cpu": "1001m"}, {"Insufficient cpu": INSUFFICIENT}),
    "one byte of memory too many is too many": ({"memory": "401"}, {"Insufficient memory": INSUFFICIENT}),
    "ephemeral storage counts": ({"ephemeral-storage": "41"}, {"Insufficient ephemeral-storage": INSUFFICIENT}),
    "extended resources count": ({GPU: "2"}, {f"Insufficient {GPU}": INSUFFICIENT}),
    "huge pages count": ({"hugepages-2Mi": "4Mi"}, {"Insufficient hugepages-2Mi": INSUFFICIENT}),
    "preemption cannot help where the whole node is too small": ({"cpu": "4001m"}, {"Insufficient cpu": UNRESOLVABLE}),
    "the whole of a node can be freed": ({"cpu": "4"}, {"Insufficient cpu": INSUFFICIENT}),
    "every reason is reported with its own code": (
        {"cpu": "2", "memory": "1001"},
        {"Insufficient cpu": INSUFFICIENT, "Insufficient memory": UNRESOLVABLE},
    ),
    "a resource that no node has is unresolvable": (
        {"example.com/other": "1"},
        {"Insufficient example.com/other": UNRESOLVABLE},
    ),
    "zero of a resource that no node has is not checked": ({"example.com/other": "0"}, {}),
    "a resource that is not counted is not checked": ({"storage": "5"}, {}),
}


@pytest.mark.parametrize(("requests", "expected"), CASES.values(), ids=CASES)
def test_a_node_is_rejected_for_each_insufficient_resource(requests: dict[str, str], expected: dict[str, Code]) -> None:
    snapshot = make_snapshot(make_node("n", **NODE), requested={"n": REQUESTED})
    reasons_by_node = rejections(build_plugin(NodeResourcesFit), make_pod(requests), snapshot)
    assert reasons_by_node == ({"n": expected} if expected else {})


def test_the_number_of_pods_is_limited_and_never_unresolvable() -> None:
    full = make_snapshot(
        make_node("full", cpu="4", pods="1"), make_node("room", cpu="4", pods="2"), requested={"full": {}, "room": {}}
    )
    assert rejections(build_plugin(NodeResourcesFit), make_pod(), full) == {"full": {"Too many pods": INSUFFICIENT}}


def test_a_node_without_pod_capacity_rejects_every_pod() -> None:
    snapshot = make_snapshot(make_node("none", cpu="4", pods="0"))
    assert rejections(build_plugin(NodeResourcesFit), make_pod(), snapshot) == {"none": {"Too many pods": INSUFFICIENT}}


def test_an_overcommitted_node_rejects_only_requested_resources() -> None:
    snapshot = make_snapshot(make_node("n", cpu="1", memory="1000"), requested={"n": {"cpu": "2"}})
    plugin = build_plugin(NodeResourcesFit)
    assert rejections(plugin, make_pod({"memory": "1"}), snapshot) == {}
    assert rejections(plugin, make_pod({"cpu": "1m"}), snapshot) == {"n": {"Insufficient cpu": INSUFFICIENT}}


def test_each_node_gets_its_own_code() -> None:
    nodes = (make_node("small", cpu="1"), make_node("busy", cpu="4"), make_node("free", cpu="4"))
    snapshot = make_snapshot(*nodes, requested={"busy": {"cpu": "3"}})
    assert rejections(build_plugin(NodeResourcesFit), make_pod({"cpu": "2"}), snapshot) == {
        "small": {"Insufficient cpu": UNRESOLVABLE},
        "busy": {"Insufficient cpu": INSUFFICIENT},
    }


def test_a_view_of_some_rows_is_filtered_by_those_rows() -> None:
    nodes = (make_node("small", cpu="1"), make_node("busy", cpu="4"), make_node("free", cpu="4"))
    snapshot = make_snapshot(*nodes, requested={"busy": {"cpu": "3"}})
    reasons_by_node = rejections(build_plugin(NodeResourcesFit), make_pod({"cpu": "2"}), snapshot, rows=[2, 1])
    assert reasons_by_node == {"busy": {"Insufficient cpu": INSUFFICIENT}}


def test_overhead_and_the_largest_init_container_count() -> None:
    snapshot = make_snapshot(make_node("n", cpu="3"))
    init = [{"name": "i", "resources": {"requests": {"cpu": "2900m"}}}]
    pod = make_pod({"cpu": "1"}, initContainers=init, overhead={"cpu": "101m"})
    assert rejections(build_plugin(NodeResourcesFit), pod, snapshot) == {"n": {"Insufficient cpu": UNRESOLVABLE}}


# -- ignored resources

IGNORED: dict[str, tuple[dict[str, list[str]], str, bool]] = {
    "an extended resource is ignored by name": ({"ignoredResources": [GPU]}, GPU, True),
    "another one is not": ({"ignoredResources": ["example.com/other"]}, GPU, False),
    "a group is the prefix before the slash": ({"ignoredResourceGroups": ["example.com"]}, GPU, True),
    "a part of a group is no group": ({"ignoredResourceGroups": ["example"]}, GPU, False),
    "native resources are never ignored by name": ({"ignoredResources": ["cpu"]}, "cpu", False),
    "native resources are never ignored by group": ({"ignoredResourceGroups": ["cpu"]}, "cpu", False),
    "huge pages are never ignored": ({"ignoredResources": ["hugepages-2Mi"]}, "hugepages-2Mi", False),
}


@pytest.mark.parametrize(("args", "resource", "fits"), IGNORED.values(), ids=IGNORED)
def test_ignored_resources_are_not_checked(args: dict[str, list[str]], resource: str, fits: bool) -> None:
    snapshot = make_snapshot(make_node("n"))
    reasons_by_node = rejections(build_plugin(NodeResourcesFit, args), make_pod({resource: "1"}), snapshot)
    assert reasons_by_node == ({} if fits else {"n": {f"Insufficient {resource}": UNRESOLVABLE}})


# -- device classes. Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).

BACKED: dict[str, tuple[str, Any, bool]] = {
    "a class backs the resource it names": (GPU, make_device_class("gpu", GPU), True),
    "a class backs the resource named after it": (
        "deviceclass.resource.kubernetes.io/gpu",
        make_device_class("gpu"),
        True,
    ),
    "a class for another resource does not matter": (GPU, make_device_class("nic", "example.com/nic"), False),
}


@pytest.mark.parametrize(("resource", "device_class", "is_delegated"), BACKED.values(), ids=BACKED)
def test_a_resource_that_a_device_class_backs_is_delegated(
    resource: str, device_class: Any, is_delegated: bool
) -> None:
    snapshot = make_snapshot(make_node("n"), device_class)
    reasons_by_node = rejections(build_plugin(NodeResourcesFit), make_pod({resource: "1"}), snapshot)
    assert reasons_by_node == ({} if is_delegated else {"n": {f"Insufficient {resource}": UNRESOLVABLE}})


def test_a_node_that_has_the_resource_itself_is_checked_even_if_a_class_backs_it() -> None:
    nodes = (make_node("none"), make_node("zero", gpu="0"), make_node("one", gpu="1"), make_node("busy", gpu="2"))
    snapshot = make_snapshot(*nodes, make_device_class("gpu", GPU), requested={"busy": {GPU: "1"}})
    assert rejections(build_plugin(NodeResourcesFit), make_pod({GPU: "2"}), snapshot) == {
        "one": {f"Insufficient {GPU}": UNRESOLVABLE},
        "busy": {f"Insufficient {GPU}": INSUFFICIENT},
    }


def test_without_the_gate_device_classes_do_not_matter() -> None:
    snapshot = make_snapshot(make_node("n"), make_device_class("gpu", GPU))
    plugin = build_plugin(NodeResourcesFit, gates={"DRAExtendedResource": False})
    assert rejections(plugin, make_pod({GPU: "1"}), snapshot) == {"n": {f"Insufficient {GPU}": UNRESOLVABLE}}
    assert plugin.filter_cache_key(snapshot.make_pod_info(make_pod({GPU: "1"}))) == ((GPU, 1),)


# -- gates and keys


def test_pod_level_requests_count_with_their_gate_on() -> None:
    snapshot = make_snapshot(make_node("n", cpu="1"))
    pod = make_pod({"cpu": "1"}, resources={"requests": {"cpu": "2"}})
    assert rejections(build_plugin(NodeResourcesFit), pod, snapshot) == {"n": {"Insufficient cpu": UNRESOLVABLE}}
    assert rejections(build_plugin(NodeResourcesFit, gates={"PodLevelResources": False}), pod, snapshot) == {}


def test_a_pod_with_sidecars_is_rejected_with_their_gate_off() -> None:
    snapshot = make_snapshot(make_node("n", cpu="4"))
    pod_info = snapshot.make_pod_info(make_pod(initContainers=[{"name": "s", "restartPolicy": "Always"}]))
    plugin = build_plugin(NodeResourcesFit, gates={"SidecarContainers": False}, release=RELEASE_1_36)
    status = plugin.pre_filter(pod_info, snapshot).status
    text = "Pod has a restartable init container and the SidecarContainers feature is disabled"
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (text,))
    assert build_plugin(NodeResourcesFit).pre_filter(pod_info, snapshot).status is None


def test_pods_with_equal_requests_share_cached_results() -> None:
    snapshot = make_snapshot(make_node("n", cpu="4"))
    plugin = build_plugin(NodeResourcesFit)
    one = snapshot.make_pod_info(make_pod({"cpu": "1", "memory": "0"}, priority=1))
    other = snapshot.make_pod_info(make_pod({"cpu": "1000m"}, priority=2))
    assert plugin.filter_cache_key(one) == plugin.filter_cache_key(other) == (("cpu", 1000),)
    assert plugin.score_cache_key(one) != plugin.score_cache_key(
        other
    )  # memory: none is 0 for one, 200Mi for the other
    assert plugin.score_cache_key(other) == (1000, 200 * 1024 * 1024)


def test_results_that_depend_on_device_classes_are_not_cached() -> None:
    snapshot = make_snapshot(make_node("n", cpu="4"))
    resources = [{"name": "cpu"}, {"name": GPU}]
    plugin = build_plugin(NodeResourcesFit, {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}})
    assert plugin.filter_cache_key(snapshot.make_pod_info(make_pod({GPU: "1"}))) is None
    assert plugin.score_cache_key(snapshot.make_pod_info(make_pod({GPU: "1"}))) is None
    assert plugin.score_cache_key(snapshot.make_pod_info(make_pod({"cpu": "1"}))) == (1000, 0)


def test_two_profiles_do_not_share_compiled_requests() -> None:
    snapshot = make_snapshot(make_node("n"))
    assert rejections(build_plugin(NodeResourcesFit, {"ignoredResources": [GPU]}), make_pod({GPU: "1"}), snapshot) == {}
    assert rejections(build_plugin(NodeResourcesFit), make_pod({GPU: "1"}), snapshot) == {
        "n": {f"Insufficient {GPU}": UNRESOLVABLE}
    }


def test_every_node_is_an_error_if_pre_filter_is_disabled() -> None:
    snapshot = make_snapshot(make_node("a", cpu="1"), make_node("b", cpu="1"))
    (group,) = build_plugin(NodeResourcesFit).filter(snapshot.make_pod_info(make_pod()), snapshot.view(), None)
    assert group.nodes.tolist() == [True, True]
    assert group.reason.code is Code.ERROR
    assert group.reason.text == 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'


def test_a_request_that_is_negative_after_an_overflow_is_not_checked() -> None:
    requests = {"cpu": "9223372036854775807"}  # in thousandths that is -1000
    snapshot = make_snapshot(make_node("a", cpu="0"))
    assert rejections(build_plugin(NodeResourcesFit), make_pod(requests), snapshot) == {}


def test_huge_requests_on_a_node_overflow_without_a_warning() -> None:
    cache = Cache()
    cache.add_or_update_node(make_node("n", memory="10000"))
    for name in ("one", "two"):
        cache.add_or_update_pod(make_pod({"memory": "9223372036854775807"}, name, nodeName="n"))
    assert rejections(build_plugin(NodeResourcesFit), make_pod({"memory": "10002"}), cache.snapshot()) == {}
