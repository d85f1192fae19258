"""Tests of patches: what each makes of an object."""

from typing import Any

import pytest

from extender.sandbox.merging import merge, strategic_merge
from extender.sandbox.refusals import RefusedError

READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "False"}

MERGED = {
    "a null removes a field": ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
    "an object goes into an object": ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"a": {"b": 1, "c": 3}}),
    "a list takes the place of a list": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "an object takes the place of a text": ({"a": "x"}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
}

STRATEGIC = {
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
    "ports of a service are told apart by port": (
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


@pytest.mark.parametrize(("before", "patch", "after"), MERGED.values(), ids=MERGED)
def test_a_merge_patch_makes_of(before: Any, patch: Any, after: Any) -> None:
    assert merge(before, patch) == after


@pytest.mark.parametrize(("kind", "before", "patch", "after"), STRATEGIC.values(), ids=STRATEGIC)
def test_a_strategic_merge_patch_makes_of(kind: str, before: Any, patch: Any, after: Any) -> None:
    assert strategic_merge(before, patch, kind) == after


def test_a_patch_leaves_the_object_it_was_applied_to_alone() -> None:
    before = {"status": {"conditions": [dict(READY)]}}
    strategic_merge(before, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "Pod")
    assert before == {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(RefusedError, match="does not contain declared merge key: type"):
        strategic_merge({}, {"conditions": [{"status": "True"}]}, "Pod")
