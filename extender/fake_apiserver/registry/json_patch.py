"""Apply a JSON patch, which is a list of operations. If one operation fails, none is applied.

As in the real API server, `replace` may add a missing field. Source: RFC 6902, RFC 6901.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from extender.fake_apiserver.registry.api_errors import new_unprocessable
from extender.fake_apiserver.registry.resources import Object


def apply_json_patch(target: Object, patch: Sequence[Any]) -> Object:
    """Apply *patch* to a copy of an object.

    Raises:
        StatusError: 422 if an operation is unknown or fails.
    """
    root: Object = {"": deepcopy(target)}
    for operation in patch:
        try:
            _apply_operation(root, operation)
        except (LookupError, TypeError, ValueError) as error:
            raise new_unprocessable() from error
    result = root[""]
    if not isinstance(result, dict):
        raise new_unprocessable()
    return result


def _apply_operation(root: Object, operation: Object) -> None:
    """Apply one operation to the object `root[""]`.

    Raises:
        LookupError: a field of the operation or of the object is missing.
        TypeError: a field has the wrong type.
        ValueError: a test fails, or the operation is unknown.
    """
    path = _parse_pointer(operation["path"])
    match operation["op"]:
        case "add":
            _add(root, path, operation["value"])
        case "remove":
            _remove(root, path)
        case "replace":
            parent, key = _resolve_parent(root, path)
            parent[key] = operation["value"]
        case "move":
            _add(root, path, _remove(root, _parse_pointer(operation["from"])))
        case "copy":
            parent, key = _resolve_parent(root, _parse_pointer(operation["from"]))
            _add(root, path, deepcopy(parent[key]))
        case "test":
            parent, key = _resolve_parent(root, path)
            if (parent.get(key) if isinstance(parent, dict) else parent[key]) != operation["value"]:
                raise ValueError("the value differs")
        case unknown:
            raise ValueError(f"unknown operation {unknown!r}")


def _parse_pointer(pointer: Any) -> list[str]:
    """Return the path from the root, such as `["", "spec", "nodeName"]`, of the JSON pointer `/spec/nodeName`."""
    if not isinstance(pointer, str):
        raise TypeError(f"{pointer!r} is not a JSON pointer")
    first, *steps = pointer.split("/")
    if first:
        raise ValueError(f"{pointer!r} is not a JSON pointer")
    return ["", *(step.replace("~1", "/").replace("~0", "~") for step in steps)]


def _resolve_parent(root: Object, steps: Sequence[str]) -> tuple[Any, Any]:
    """Return the object or list that contains the value at the path *steps*, and the value's name or index in it.

    The last step may be `-`, which means the end of a list.
    """
    parent: Any = root
    for step in steps[:-1]:
        parent = parent[_resolve_key(parent, step)]
    return parent, _resolve_key(parent, steps[-1])


def _resolve_key(parent: Any, step: str) -> str | int:
    if isinstance(parent, dict):
        return step
    if not isinstance(parent, list):
        raise TypeError("neither an object nor a list")
    if step == "-":
        return len(parent)
    if not (step.isascii() and step.isdigit()):
        raise ValueError(f"{step!r} is not an index")
    return int(step)


def _add(root: Object, steps: Sequence[str], value: Any) -> None:
    parent, key = _resolve_parent(root, steps)
    if isinstance(parent, dict):
        parent[key] = value
    elif key > len(parent):
        raise IndexError(key)
    else:
        parent.insert(key, value)


def _remove(root: Object, steps: Sequence[str]) -> Any:
    parent, key = _resolve_parent(root, steps)
    return parent.pop(key)
