"""Merge patches and strategic merge patches."""

from typing import Any

import pytest

from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.patch import apply_json_patch, apply_merge_patch, apply_strategic_merge_patch

READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "False"}

MERGE_PATCHES = {
    "a null removes a field": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "an object goes into an object": ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
    "a list takes the place of a list": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "an object takes the place of a text": ({"a": "x"}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
}

STRATEGIC_MERGE_PATCHES = {
    "a condition is changed by its type": (
        "Pod",
        {"conditions": [READY, SCHEDULED]},
        {"conditions": [{"type": "PodScheduled", "status": "True"}]},
        {"conditions": [READY, {"type": "PodScheduled", "status": "True"}]},
    ),
    "a condition that is new comes first": (
        "Pod",
        {"conditions": [READY]},
        {"conditions": [SCHEDULED]},
        {"conditions": [SCHEDULED, READY]},
    ),
    "an element is deleted by its key": (
        "Pod",
        {"conditions": [READY, SCHEDULED]},
        {"conditions": [{"type": "Ready", "$patch": "delete"}]},
        {"conditions": [SCHEDULED]},
    ),
    "a list is replaced when the patch says so": (
        "Pod",
        {"conditions": [READY]},
        {"conditions": [SCHEDULED, {"$patch": "replace"}]},
        {"conditions": [SCHEDULED]},
    ),
    "a list without a key is replaced": (
        "Pod",
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "a container is changed by its name": (
        "Pod",
        {"containers": [{"name": "c", "image": "a:1", "env": [{"name": "X", "value": "1"}]}]},
        {"containers": [{"name": "c", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}]},
        {
            "containers": [
                {"name": "c", "image": "a:2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}
            ]
        },
    ),
    "ports of a service are event_summary apart by port": (
        "Service",
        {"ports": [{"port": 80, "name": "a"}]},
        {"ports": [{"port": 80, "name": "b"}, {"port": 81}]},
        {"ports": [{"port": 80, "name": "b"}, {"port": 81}]},
    ),
    "a finalizer is added to the set": (
        "Pod",
        {"finalizers": ["a"]},
        {"finalizers": ["b", "a"]},
        {"finalizers": ["b", "a"]},
    ),
    "a finalizer is taken from the set": (
        "Pod",
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["b"]},
    ),
    "only the retained fields stay": (
        "Pod",
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
    ),
    "elements take the order that the patch wants": (
        "Pod",
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "x"}]},
        {"containers": [{"name": "b"}, {"name": "a", "image": "x"}]},
    ),
    "a null removes a field": ("Pod", {"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
    "an object is replaced when the patch says so": (
        "Pod",
        {"a": {"b": 1}},
        {"a": {"$patch": "replace", "c": 2}},
        {"a": {"c": 2}},
    ),
}


@pytest.mark.parametrize(("target", "patch", "result"), MERGE_PATCHES.values(), ids=MERGE_PATCHES)
def test_a_merge_patch_is_applied(target: Any, patch: Any, result: Any) -> None:
    assert apply_merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("kind", "target", "patch", "result"), STRATEGIC_MERGE_PATCHES.values(), ids=STRATEGIC_MERGE_PATCHES
)
def test_a_strategic_merge_patch_is_applied(kind: str, target: Any, patch: Any, result: Any) -> None:
    assert apply_strategic_merge_patch(target, patch, kind) == result


def test_a_patch_does_not_mutate_its_target() -> None:
    target = {"status": {"conditions": [dict(READY)]}}
    apply_strategic_merge_patch(target, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "Pod")
    assert target == {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_an_element_without_its_merge_key_is_rejected() -> None:
    with pytest.raises(StatusError, match="does not contain declared merge key: type"):
        apply_strategic_merge_patch({}, {"conditions": [{"status": "True"}]}, "Pod")


TARGET = {"a": {"b/c": 1, "~": 2}, "list": [1, 2, 3]}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([], TARGET),
        ([{"op": "add", "path": "/x", "value": {}}], {**TARGET, "x": {}}),
        ([{"op": "add", "path": "/list/1", "value": 9}], {**TARGET, "list": [1, 9, 2, 3]}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {**TARGET, "list": [1, 2, 3, 9]}),
        ([{"op": "remove", "path": "/a/b~1c"}], {**TARGET, "a": {"~": 2}}),
        ([{"op": "remove", "path": "/list/0"}], {**TARGET, "list": [2, 3]}),
        ([{"op": "replace", "path": "/a/~0", "value": 3}], {**TARGET, "a": {"b/c": 1, "~": 3}}),
        ([{"op": "replace", "path": "", "value": {"new": 1}}], {"new": 1}),
        ([{"op": "move", "from": "/list/0", "path": "/list/2"}], {**TARGET, "list": [2, 3, 1]}),
        ([{"op": "copy", "from": "/list", "path": "/a"}], {"a": [1, 2, 3], "list": [1, 2, 3]}),
        ([{"op": "test", "path": "/list", "value": [1, 2, 3]}, {"op": "remove", "path": "/a"}], {"list": [1, 2, 3]}),
    ],
    ids=lambda value: (
        " ".join(str(operation.get("op")) + operation["path"] for operation in value) if type(value) is list else ""
    ),
)
def test_operations_are_applied_in_order(patch: list[Any], result: Any) -> None:
    assert apply_json_patch(TARGET, patch) == result
    assert TARGET == {"a": {"b/c": 1, "~": 2}, "list": [1, 2, 3]}


@pytest.mark.parametrize(
    "operation",
    [
        7,
        {"op": "add", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "add", "path": "x", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/list/4", "value": 1},
        {"op": "add", "path": "/list/first", "value": 1},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "replace", "path": "", "value": 1},
        {"op": "remove", "path": "/list/3"},
        {"op": "remove", "path": "/a/none"},
        {"op": "move", "from": "/none", "path": "/x"},
        {"op": "test", "path": "/list/0", "value": 9},
        {"op": "grow", "path": "/list"},
    ],
    ids=str,
)
def test_a_patch_with_an_invalid_operation_is_rejected_as_a_whole(operation: Any) -> None:
    with pytest.raises(StatusError) as error:
        apply_json_patch(TARGET, [{"op": "remove", "path": "/list/0"}, operation])
    assert error.value.code == 422
    assert TARGET["list"] == [1, 2, 3]
