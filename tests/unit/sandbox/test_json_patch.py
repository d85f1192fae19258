"""JSON patches; what the real API server says to the same is compared in tests/controlplane."""

from typing import Any

import pytest

from extender.sandbox.json_patch import applied
from extender.sandbox.refusals import RefusedError

BEFORE = {"a": {"b/c": 1, "~": 2}, "list": [1, 2, 3]}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ([], BEFORE),
        ([{"op": "add", "path": "/x", "value": {}}], {**BEFORE, "x": {}}),
        ([{"op": "add", "path": "/list/1", "value": 9}], {**BEFORE, "list": [1, 9, 2, 3]}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {**BEFORE, "list": [1, 2, 3, 9]}),
        ([{"op": "remove", "path": "/a/b~1c"}], {**BEFORE, "a": {"~": 2}}),
        ([{"op": "remove", "path": "/list/0"}], {**BEFORE, "list": [2, 3]}),
        ([{"op": "replace", "path": "/a/~0", "value": 3}], {**BEFORE, "a": {"b/c": 1, "~": 3}}),
        ([{"op": "replace", "path": "", "value": {"new": 1}}], {"new": 1}),
        ([{"op": "move", "from": "/list/0", "path": "/list/2"}], {**BEFORE, "list": [2, 3, 1]}),
        ([{"op": "copy", "from": "/list", "path": "/a"}], {"a": [1, 2, 3], "list": [1, 2, 3]}),
        ([{"op": "test", "path": "/list", "value": [1, 2, 3]}, {"op": "remove", "path": "/a"}], {"list": [1, 2, 3]}),
    ],
    ids=lambda value: " ".join(str(each.get("op")) + each["path"] for each in value) if type(value) is list else "",
)
def test_operations_are_carried_out_in_order(patch: list[Any], after: Any) -> None:
    assert applied(BEFORE, patch) == after
    assert BEFORE == {"a": {"b/c": 1, "~": 2}, "list": [1, 2, 3]}


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
def test_what_cannot_be_carried_out_is_refused_as_a_whole(operation: Any) -> None:
    with pytest.raises(RefusedError) as refused:
        applied(BEFORE, [{"op": "remove", "path": "/list/0"}, operation])
    assert refused.value.code == 422
    assert BEFORE["list"] == [1, 2, 3]
