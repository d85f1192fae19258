"""JSON patches; tests/controlplane compares the same patches with the real API server."""

from typing import Any

import pytest

from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.json_patch import apply_json_patch

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
