"""Requested nodes: names looked up in a snapshot, and whole nodes added to a hypothesis of it."""

import json

import numpy as np
import pytest

from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.node_list import NodeList
from extender.extender_api.node_names import NodeNames
from extender.extender_api.payloads import decode_args
from extender.extender_api.request_limits import RequestError
from extender.extender_api.requested_nodes import add_requested_nodes, find_nodes_by_name
from tests.build import make_cluster, make_node, make_pod
from tests.coroutines import run_now


def decode_nodes(*nodes: dict[str, object]) -> NodeList:
    node_list = run_now(decode_args(json.dumps({"Pod": {}, "Nodes": {"items": nodes}}).encode())).nodes
    assert node_list is not None
    return node_list


def test_names_have_their_rows_and_unknown_names_have_none() -> None:
    snapshot = make_cluster(make_node("n1"), make_node("n2"), make_node("n3")).snapshot()
    requested = find_nodes_by_name(NodeNames(["n3", "new", "n1"]), snapshot, PluginRuntime())
    assert requested.rows.tolist() == [2, -1, 0]
    assert (requested.known_mask.tolist(), requested.unknown_count) == ([True, False, True], 1)
    assert requested.make_row_mask().tolist() == [True, False, True]


def test_a_column_is_selected_in_the_order_of_the_request() -> None:
    snapshot = make_cluster(make_node("n1"), make_node("n2")).snapshot()
    requested = find_nodes_by_name(NodeNames(["n2", "new", "n1"]), snapshot, PluginRuntime())
    assert requested.select(np.array([False, True])).tolist() == [True, False, False]
    assert requested.select(np.zeros(0, dtype=np.bool_)).tolist() == [False, False, False]


def test_whole_nodes_are_added_and_the_snapshot_does_not_change() -> None:
    snapshot = make_cluster(make_node("n1")).snapshot()
    nodes = decode_nodes({"metadata": {"name": "n1", "labels": {"a": "b"}}}, {"metadata": {"name": "n2"}})
    requested = run_now(add_requested_nodes(make_pod("web"), nodes, snapshot, PluginRuntime()))
    assert (requested.names, requested.unknown_count) == (["n1", "n2"], 0)
    assert [node.metadata.labels for node in requested.snapshot.nodes] == [{"a": "b"}, {}]
    assert list(snapshot.names) == ["n1"]


def test_only_the_images_of_the_pod_are_indexed_and_every_image_is_found() -> None:
    names = [[f"app-{number}:1", f"app-{number}@sha256:0"] for number in range(3)]
    images = [{"names": pair, "sizeBytes": 100} for pair in names]
    nodes = decode_nodes(*({"metadata": {"name": f"n{n}"}, "status": {"images": images[: n + 1]}} for n in range(3)))
    pod = make_pod("web", spec={"containers": [{"name": "app", "image": "app-1:1"}]})
    snapshot = run_now(add_requested_nodes(pod, nodes, make_cluster().snapshot(), PluginRuntime())).snapshot
    assert list(snapshot._tables.nodes.images._states) == ["app-1:1"]
    rows = {name: sorted(state.rows) for name in ("app-0:1", "app-1:1") if (state := snapshot.image_state(name))}
    assert rows == {"app-0:1": [0, 1, 2], "app-1:1": [1, 2]}


def test_an_equal_node_is_replaced_by_that_of_the_cache() -> None:
    snapshot = make_cluster(make_node("n1")).snapshot()
    nodes = decode_nodes({"metadata": {"name": "n2"}})
    nodes.nodes[0].node = make_node("n1")
    run_now(add_requested_nodes(make_pod("web"), nodes, snapshot, PluginRuntime()))
    assert nodes.nodes[0].node is snapshot.nodes[0]


def test_an_invalid_quantity_is_rejected_with_its_index() -> None:
    nodes = decode_nodes({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "lots"}}})
    with pytest.raises(RequestError, match=r"Nodes\.items\[0\]\.status\.allocatable: ") as caught:
        run_now(add_requested_nodes(make_pod("web"), nodes, make_cluster().snapshot(), PluginRuntime()))
    assert caught.value.status == 400


def make_nodes_with_resources(first: int, count: int) -> NodeList:
    """Return a node with *count* resources, and with a taint and a feature of the number *first*."""
    resources = {"pods": "10", **{f"example.com/r{number}": "1" for number in range(first, first + count)}}
    taint = {"key": f"t{first}", "effect": "NoSchedule"}
    return decode_nodes(
        {
            "metadata": {"name": "n1"},
            "spec": {"taints": [taint]},
            "status": {"allocatable": resources, "declaredFeatures": [f"f{first}"]},
        }
    )


def test_nodes_of_many_requests_have_at_most_256_resources_together() -> None:
    snapshot = make_cluster().snapshot()
    for first in range(0, 250, 50):
        run_now(add_requested_nodes(make_pod("web"), make_nodes_with_resources(first, 50), snapshot, PluginRuntime()))
    pod = make_pod("web", requests={"example.com/r253": "1"})
    with pytest.raises(RequestError) as caught:
        run_now(add_requested_nodes(pod, make_nodes_with_resources(250, 4), snapshot, PluginRuntime()))
    assert (caught.value.status, caught.value.message) == (
        413,
        "Nodes.items[0]: the requests have more than 256 different resources",
    )
    run_now(add_requested_nodes(make_pod("web"), make_nodes_with_resources(0, 250), snapshot, PluginRuntime()))
    assert len(snapshot.symbols.resources) == 253


def test_resources_that_only_pods_request_do_not_count_for_the_limit() -> None:
    """No pod could get a new resource after pods had requested 256 others."""
    snapshot = make_cluster(make_node("n0")).snapshot()
    nodes = make_nodes_with_resources(0, 1)
    for number in range(300):
        pod = make_pod("web", requests={f"example.com/other-{number}": "1"})
        run_now(add_requested_nodes(pod, nodes, snapshot, PluginRuntime()))
        assert snapshot.make_pod_info(pod).signature.requests == ()
    pod = make_pod("web", requests={"example.com/r9": "1"})
    requested = run_now(add_requested_nodes(pod, make_nodes_with_resources(9, 1), snapshot, PluginRuntime()))
    resource_id = requested.snapshot.symbols.get_resource_id("example.com/r9")
    assert requested.snapshot.view().allocatable(resource_id).tolist() == [0, 1]


def test_a_node_with_too_many_resources_is_added_without_them_for_pods_that_request_others() -> None:
    """One node with 300 resources made each request fail with 413."""
    snapshot = make_cluster().snapshot()
    pod = make_pod("web", requests={"cpu": "1"})
    nodes = make_nodes_with_resources(0, 300)
    requested = run_now(add_requested_nodes(pod, nodes, snapshot, PluginRuntime()))
    assert requested.unknown_count == 0
    assert len(snapshot.symbols.resources) == 3


def test_label_values_of_requested_nodes_are_not_retained() -> None:
    cache = make_cluster(make_node("n0", labels={"zone": "a"}), make_node("n1", labels={"zone": "b"}))
    snapshot = cache.snapshot()
    assert snapshot.view().label_value_ids("zone").tolist() == [0, 1]
    for number in range(3):
        labels = {"zone": f"z{number}", "rack": f"r{number}"}
        node_list = decode_nodes(
            {"metadata": {"name": "n0", "labels": labels}}, {"metadata": {"name": "new", "labels": {"rack": "r"}}}
        )
        requested = run_now(add_requested_nodes(make_pod("web"), node_list, snapshot, PluginRuntime()))
        symbols, view = requested.snapshot.symbols, requested.snapshot.view()
        assert view.label_value_ids("zone").tolist() == [2, 1, -1]
        assert view.label_value_ids("rack").tolist() == [0, -1, 1]
        assert list(symbols.get_label_values("zone")) == ["a", "b", f"z{number}"]
        assert list(symbols.get_label_values("rack")) == [f"r{number}", "r"]
    assert list(snapshot.symbols.get_label_values("zone")) == ["a", "b"]
    assert list(snapshot.symbols.get_label_values("rack")) == []


def test_taints_and_features_of_requested_nodes_are_not_retained() -> None:
    snapshot = make_cluster(make_node("n0", taints=[{"key": "a", "effect": "NoSchedule"}])).snapshot()
    symbols = snapshot.symbols
    for number in range(3):
        nodes = make_nodes_with_resources(number, 1)
        requested = run_now(add_requested_nodes(make_pod("web"), nodes, snapshot, PluginRuntime()))
        sets = requested.snapshot.symbols
        assert [[taint.key for taint in taints] for taints in sets.taint_sets] == [[], ["a"], [f"t{number}"]]
        assert list(sets.feature_sets) == [frozenset(), frozenset({f"f{number}"})]
    assert (len(symbols.taint_sets), len(symbols.feature_sets)) == (2, 1)
