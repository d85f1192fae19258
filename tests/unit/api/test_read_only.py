"""Read-only copies of API objects: equal to the objects, but without a way to change them."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.devices import OpaqueDeviceConfiguration
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.read_only import ReadOnlyDict, ReadOnlyMapping, ReadOnlySequence, copy_read_only
from extender.cache.pod_signature import fingerprint

NODE = from_builtins(
    {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}},
    },
    Node,
)
CHANGES: dict[str, Callable[[Any], Any]] = {
    "sets an item": lambda items: items.__setitem__("a", 1),
    "deletes an item": lambda items: items.__delitem__("a"),
    "merges": lambda items: items.__ior__({"b": 1}),
    "clears": lambda items: items.clear(),
    "pops": lambda items: items.pop("a"),
    "pops any item": lambda items: items.popitem(),
    "sets a default": lambda items: items.setdefault("b", 1),
    "updates": lambda items: items.update(b=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_method_changes_a_read_only_dict(change: Callable[[Any], Any]) -> None:
    items = ReadOnlyDict({"a": 0})
    with pytest.raises(TypeError, match="read-only: change a copy"):
        change(items)
    assert items == {"a": 0}


@pytest.mark.parametrize(
    "make_copy",
    [dict, copy.copy, copy.deepcopy, lambda items: items | {}],
    ids=["dict", "copy", "deepcopy", "union"],
)
def test_a_copy_of_a_read_only_dict_can_be_changed(make_copy: Callable[[Any], Any]) -> None:
    changed = make_copy(ReadOnlyDict({"a": 0}))
    changed["a"] = 1
    assert changed == {"a": 1}


def test_a_read_only_copy_equals_its_object_and_has_the_same_json_and_fingerprint() -> None:
    frozen = copy_read_only(NODE)
    assert frozen == NODE
    assert msgspec.json.decode(msgspec.json.encode(frozen), type=Node) == NODE
    assert fingerprint(frozen.metadata.labels) == fingerprint(NODE.metadata.labels)
    assert frozen.spec.taints is NODE.spec.taints  # parts without dicts are shared


@pytest.mark.parametrize(
    "get_dict",
    [
        lambda pod: pod.metadata.labels,
        lambda pod: pod.metadata.annotations,
        lambda pod: pod.spec.node_selector,
        lambda pod: pod.spec.containers[0].resources.requests,
        lambda pod: pod.spec.containers[0].resources.limits,
        lambda pod: pod.spec.init_containers[0].resources.requests,
        lambda pod: pod.spec.topology_spread_constraints[0].label_selector.match_labels,
        lambda pod: (
            pod.spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution[
                0
            ].label_selector.match_labels
        ),
    ],
    ids=["labels", "annotations", "selector", "requests", "limits", "init requests", "spreading", "affinity"],
)
def test_every_dict_of_a_pod_is_read_only_even_if_it_is_empty(get_dict: Callable[[Pod], Any]) -> None:
    container = {"name": "a", "resources": {"requests": {"cpu": "1"}}}
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
    spec = {
        "containers": [container],
        "initContainers": [container],
        "topologySpreadConstraints": [{"labelSelector": {"matchLabels": {"a": "b"}}}],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }
    pod = from_builtins({"metadata": {"name": "p"}, "spec": spec}, Pod)
    with pytest.raises(TypeError):
        get_dict(copy_read_only(pod))["x"] = "y"
    get_dict(pod)["x"] = "y"  # the object itself can be changed


def test_values_of_any_type_are_read_only_at_every_depth() -> None:
    frozen = copy_read_only(OpaqueDeviceConfiguration(driver="d", parameters={"a": [{"b": 1}]}))
    assert frozen.parameters == {"a": ({"b": 1},)}
    with pytest.raises(TypeError):
        frozen.parameters["a"][0]["b"] = 2


def test_a_read_only_sequence_makes_its_items_read_only_when_they_are_read() -> None:
    items = ReadOnlySequence([NODE, NODE], copy_read_only)
    assert len(items) == 2
    assert [type(item.metadata.labels) for item in (items[1], *items[:1], *items)] == [ReadOnlyDict] * 4
    with pytest.raises(TypeError):
        items[0] = NODE  # type: ignore[index]


def test_a_read_only_mapping_makes_its_values_read_only_when_they_are_read() -> None:
    items = ReadOnlyMapping({"n1": NODE}, copy_read_only)
    assert (len(items), list(items), "n1" in items, items.get("n2")) == (1, ["n1"], True, None)
    assert [type(item.metadata.labels) for item in (items["n1"], *items.values())] == [ReadOnlyDict] * 2
    with pytest.raises(TypeError):
        items["n1"] = NODE  # type: ignore[index]
