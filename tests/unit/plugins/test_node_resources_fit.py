"""What NodeResourcesFit refuses. Source: B030 to B034."""

from typing import Any

import numpy as np
import pytest

from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.framework.verdict import Code
from extender.objects.pod import Pod
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit
from tests.unit.plugins.resource_worlds import GPU, a_class, a_cluster, a_node, a_pod, built

SHORT, HOPELESS = Code.UNSCHEDULABLE, Code.UNRESOLVABLE


def refusals(plugin: Any, pod: Pod, cluster: Snapshot, rows: list[int] | None = None) -> dict[str, dict[str, Code]]:
    query = cluster.query(pod)
    answer = plugin.pre_filter(query, cluster)
    assert answer.status is None
    view = cluster.view(None if rows is None else np.array(rows))
    found: dict[str, dict[str, Code]] = {}
    for mask, reason in plugin.filter(query, view, answer.notes):
        for place in np.flatnonzero(mask):
            found.setdefault(view.names[place], {})[reason.text] = reason.code
    return found


NODE = {"cpu": "4", "memory": "1000", "ephemeral_storage": "100", "gpu": "2", "hugepages_2Mi": "4Mi"}
TAKEN = {"cpu": "3", "memory": "600", "ephemeral-storage": "60", GPU: "1", "hugepages-2Mi": "2Mi"}

CASES: dict[str, tuple[dict[str, str], dict[str, Code]]] = {
    "a pod that asks for nothing fits": ({}, {}),
    "what is left may be used up": (
        {"cpu": "1", "memory": "400", "ephemeral-storage": "40", GPU: "1", "hugepages-2Mi": "2Mi"},
        {},
    ),
    "one milli-cpu too many is too many": ({"cpu": "1001m"}, {"Insufficient cpu": SHORT}),
    "one byte of memory too many is too many": ({"memory": "401"}, {"Insufficient memory": SHORT}),
    "ephemeral storage counts": ({"ephemeral-storage": "41"}, {"Insufficient ephemeral-storage": SHORT}),
    "extended resources count": ({GPU: "2"}, {f"Insufficient {GPU}": SHORT}),
    "huge pages count": ({"hugepages-2Mi": "4Mi"}, {"Insufficient hugepages-2Mi": SHORT}),
    "preemption cannot help where the whole node is too small": ({"cpu": "4001m"}, {"Insufficient cpu": HOPELESS}),
    "the whole of a node can be freed": ({"cpu": "4"}, {"Insufficient cpu": SHORT}),
    "every reason is told, each with its code": (
        {"cpu": "2", "memory": "1001"},
        {"Insufficient cpu": SHORT, "Insufficient memory": HOPELESS},
    ),
    "a resource that no node has is short for good": (
        {"example.com/other": "1"},
        {"Insufficient example.com/other": HOPELESS},
    ),
    "zero of a resource that no node has is not checked": ({"example.com/other": "0"}, {}),
    "a resource that is not counted is not checked": ({"storage": "5"}, {}),
}


@pytest.mark.parametrize(("requests", "expected"), CASES.values(), ids=CASES)
def test_a_node_is_refused_for_each_resource_it_is_short_of(
    requests: dict[str, str], expected: dict[str, Code]
) -> None:
    cluster = a_cluster(a_node("n", **NODE), taken={"n": TAKEN})
    found = refusals(built(NodeResourcesFit), a_pod(requests), cluster)
    assert found == ({"n": expected} if expected else {})


def test_the_number_of_pods_is_limited_and_never_unresolvable() -> None:
    full = a_cluster(
        a_node("full", cpu="4", pods="1"), a_node("room", cpu="4", pods="2"), taken={"full": {}, "room": {}}
    )
    assert refusals(built(NodeResourcesFit), a_pod(), full) == {"full": {"Too many pods": SHORT}}


def test_a_node_that_takes_no_pods_refuses_every_pod() -> None:
    cluster = a_cluster(a_node("none", cpu="4", pods="0"))
    assert refusals(built(NodeResourcesFit), a_pod(), cluster) == {"none": {"Too many pods": SHORT}}


def test_an_overcommitted_node_refuses_only_what_is_asked_for() -> None:
    cluster = a_cluster(a_node("n", cpu="1", memory="1000"), taken={"n": {"cpu": "2"}})
    plugin = built(NodeResourcesFit)
    assert refusals(plugin, a_pod({"memory": "1"}), cluster) == {}
    assert refusals(plugin, a_pod({"cpu": "1m"}), cluster) == {"n": {"Insufficient cpu": SHORT}}


def test_nodes_of_one_call_get_their_own_codes() -> None:
    nodes = (a_node("small", cpu="1"), a_node("busy", cpu="4"), a_node("free", cpu="4"))
    cluster = a_cluster(*nodes, taken={"busy": {"cpu": "3"}})
    assert refusals(built(NodeResourcesFit), a_pod({"cpu": "2"}), cluster) == {
        "small": {"Insufficient cpu": HOPELESS},
        "busy": {"Insufficient cpu": SHORT},
    }


def test_a_view_of_some_rows_is_answered_for_those_rows() -> None:
    nodes = (a_node("small", cpu="1"), a_node("busy", cpu="4"), a_node("free", cpu="4"))
    cluster = a_cluster(*nodes, taken={"busy": {"cpu": "3"}})
    found = refusals(built(NodeResourcesFit), a_pod({"cpu": "2"}), cluster, rows=[2, 1])
    assert found == {"busy": {"Insufficient cpu": SHORT}}


def test_overhead_and_the_dearest_init_container_count() -> None:
    cluster = a_cluster(a_node("n", cpu="3"))
    init = [{"name": "i", "resources": {"requests": {"cpu": "2900m"}}}]
    pod = a_pod({"cpu": "1"}, initContainers=init, overhead={"cpu": "101m"})
    assert refusals(built(NodeResourcesFit), pod, cluster) == {"n": {"Insufficient cpu": HOPELESS}}


# -- ignored resources

IGNORED: dict[str, tuple[dict[str, list[str]], str, bool]] = {
    "an extended resource is ignored by name": ({"ignoredResources": [GPU]}, GPU, True),
    "another one is not": ({"ignoredResources": ["example.com/other"]}, GPU, False),
    "a group is what stands before the slash": ({"ignoredResourceGroups": ["example.com"]}, GPU, True),
    "a part of a group is no group": ({"ignoredResourceGroups": ["example"]}, GPU, False),
    "native resources are never ignored by name": ({"ignoredResources": ["cpu"]}, "cpu", False),
    "native resources are never ignored by group": ({"ignoredResourceGroups": ["cpu"]}, "cpu", False),
    "huge pages are never ignored": ({"ignoredResources": ["hugepages-2Mi"]}, "hugepages-2Mi", False),
}


@pytest.mark.parametrize(("args", "resource", "fits"), IGNORED.values(), ids=IGNORED)
def test_ignored_resources_are_not_checked(args: dict[str, list[str]], resource: str, fits: bool) -> None:
    cluster = a_cluster(a_node("n"))
    found = refusals(built(NodeResourcesFit, args), a_pod({resource: "1"}), cluster)
    assert found == ({} if fits else {"n": {f"Insufficient {resource}": HOPELESS}})


# -- device classes. Source: B034.

SERVED: dict[str, tuple[str, Any, bool]] = {
    "a class serves the resource it names": (GPU, a_class("gpu", GPU), True),
    "a class serves the resource made from its name": (
        "deviceclass.resource.kubernetes.io/gpu",
        a_class("gpu"),
        True,
    ),
    "a class for something else does not help": (GPU, a_class("nic", "example.com/nic"), False),
}


@pytest.mark.parametrize(("resource", "device_class", "left"), SERVED.values(), ids=SERVED)
def test_a_resource_that_devices_serve_is_left_to_them(resource: str, device_class: Any, left: bool) -> None:
    cluster = a_cluster(a_node("n"), device_class)
    found = refusals(built(NodeResourcesFit), a_pod({resource: "1"}), cluster)
    assert found == ({} if left else {"n": {f"Insufficient {resource}": HOPELESS}})


def test_a_node_that_offers_the_resource_itself_is_checked_although_a_class_serves_it() -> None:
    nodes = (a_node("none"), a_node("zero", gpu="0"), a_node("one", gpu="1"), a_node("busy", gpu="2"))
    cluster = a_cluster(*nodes, a_class("gpu", GPU), taken={"busy": {GPU: "1"}})
    assert refusals(built(NodeResourcesFit), a_pod({GPU: "2"}), cluster) == {
        "one": {f"Insufficient {GPU}": HOPELESS},
        "busy": {f"Insufficient {GPU}": SHORT},
    }


def test_without_the_gate_device_classes_do_not_matter() -> None:
    cluster = a_cluster(a_node("n"), a_class("gpu", GPU))
    plugin = built(NodeResourcesFit, gates={"DRAExtendedResource": False})
    assert refusals(plugin, a_pod({GPU: "1"}), cluster) == {"n": {f"Insufficient {GPU}": HOPELESS}}
    assert plugin.filter_key(cluster.query(a_pod({GPU: "1"}))) == ((GPU, 1),)


# -- gates and keys


def test_requests_of_the_pod_as_a_whole_count_while_their_gate_is_on() -> None:
    cluster = a_cluster(a_node("n", cpu="1"))
    pod = a_pod({"cpu": "1"}, resources={"requests": {"cpu": "2"}})
    assert refusals(built(NodeResourcesFit), pod, cluster) == {"n": {"Insufficient cpu": HOPELESS}}
    assert refusals(built(NodeResourcesFit, gates={"PodLevelResources": False}), pod, cluster) == {}


def test_without_their_gate_sidecars_keep_a_pod_off_every_node() -> None:
    cluster = a_cluster(a_node("n", cpu="4"))
    query = cluster.query(a_pod(initContainers=[{"name": "s", "restartPolicy": "Always"}]))
    status = built(NodeResourcesFit, gates={"SidecarContainers": False}).pre_filter(query, cluster).status
    text = "Pod has a restartable init container and the SidecarContainers feature is disabled"
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (text,))
    assert built(NodeResourcesFit).pre_filter(query, cluster).status is None


def test_pods_that_ask_for_the_same_share_their_answers() -> None:
    cluster = a_cluster(a_node("n", cpu="4"))
    plugin = built(NodeResourcesFit)
    one = cluster.query(a_pod({"cpu": "1", "memory": "0"}, priority=1))
    other = cluster.query(a_pod({"cpu": "1000m"}, priority=2))
    assert plugin.filter_key(one) == plugin.filter_key(other) == (("cpu", 1000),)
    assert plugin.score_key(one) != plugin.score_key(other)  # memory: none is 0 for one, 200Mi for the other
    assert plugin.score_key(other) == (1000, 200 * 1024 * 1024)


def test_answers_that_hang_on_device_classes_are_not_kept() -> None:
    cluster = a_cluster(a_node("n", cpu="4"))
    resources = [{"name": "cpu"}, {"name": GPU}]
    plugin = built(NodeResourcesFit, {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}})
    assert plugin.filter_key(cluster.query(a_pod({GPU: "1"}))) is None
    assert plugin.score_key(cluster.query(a_pod({GPU: "1"}))) is None
    assert plugin.score_key(cluster.query(a_pod({"cpu": "1"}))) == (1000, 0)


def test_two_profiles_do_not_share_what_they_compiled() -> None:
    cluster = a_cluster(a_node("n"))
    assert refusals(built(NodeResourcesFit, {"ignoredResources": [GPU]}), a_pod({GPU: "1"}), cluster) == {}
    assert refusals(built(NodeResourcesFit), a_pod({GPU: "1"}), cluster) == {"n": {f"Insufficient {GPU}": HOPELESS}}


def test_where_pre_filter_is_switched_off_every_node_is_an_error() -> None:
    cluster = a_cluster(a_node("a", cpu="1"), a_node("b", cpu="1"))
    (group,) = built(NodeResourcesFit).filter(cluster.query(a_pod()), cluster.view(), None)
    assert group.nodes.tolist() == [True, True]
    assert group.reason.code is Code.ERROR
    assert group.reason.text == 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'


def test_an_amount_that_is_negative_after_an_overflow_is_not_checked() -> None:
    twice = {"cpu": "9223372036854775807"}  # in thousandths that is -1000
    cluster = a_cluster(a_node("a", cpu="0"))
    assert refusals(built(NodeResourcesFit), a_pod(twice), cluster) == {}


def test_absurd_requests_on_a_node_add_up_with_overflow_and_without_a_warning() -> None:
    state = ClusterState()
    state.put_node(a_node("n", memory="10000"))
    for name in ("one", "two"):
        state.put_pod(a_pod({"memory": "9223372036854775807"}, name, nodeName="n"))
    assert refusals(built(NodeResourcesFit), a_pod({"memory": "10002"}), state.snapshot()) == {}
