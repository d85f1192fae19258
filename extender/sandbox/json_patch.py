"""A JSON patch applied: a list of operations, one after another, all or none.

A field that is replaced need not be there, as with the real API server. Source: RFC 6902, RFC 6901.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from extender.sandbox.refusals import unprocessable
from extender.sandbox.served import Object


def applied(before: Object, patch: Sequence[Any]) -> Object:
    """What *patch* makes of an object, which stays as it is.

    Raises:
        RefusedError: 422, an operation is unknown or cannot be carried out, or a test fails.
    """
    root: Object = {"": deepcopy(before)}
    for operation in patch:
        try:
            _carry_out(root, operation)
        except (LookupError, TypeError, ValueError) as fault:
            raise unprocessable() from fault
    after = root[""]
    if not isinstance(after, dict):
        raise unprocessable()
    return after


def _carry_out(root: Object, operation: Object) -> None:
    """One operation; *root* has the whole object under the empty name.

    Raises:
        LookupError: a part is missing, of the operation or of the object.
        TypeError: a part is of another type.
        ValueError: a test fails, or the operation is unknown.
    """
    path = _steps(operation["path"])
    match operation["op"]:
        case "add":
            _add(root, path, operation["value"])
        case "remove":
            _taken(root, path)
        case "replace":
            holder, last = _holder(root, path)
            holder[last] = operation["value"]
        case "move":
            _add(root, path, _taken(root, _steps(operation["from"])))
        case "copy":
            holder, last = _holder(root, _steps(operation["from"]))
            _add(root, path, deepcopy(holder[last]))
        case "test":
            holder, last = _holder(root, path)
            if (holder.get(last) if isinstance(holder, dict) else holder[last]) != operation["value"]:
                raise ValueError("the value is another")
        case unknown:
            raise ValueError(f"there is no operation {unknown!r}")


def _steps(pointer: Any) -> list[str]:
    """Where a pointer leads: the empty name, then a step each."""
    if not isinstance(pointer, str):
        raise TypeError(f"{pointer!r} is no pointer")
    first, *steps = pointer.split("/")
    if first:
        raise ValueError(f"{pointer!r} is no pointer")
    return ["", *(step.replace("~1", "/").replace("~0", "~") for step in steps)]


def _holder(root: Object, steps: Sequence[str]) -> tuple[Any, Any]:
    """The object or list that the last step is in, and its name or index there; `-` is behind the end of a list."""
    found: Any = root
    for step in steps[:-1]:
        found = found[_name(found, step)]
    return found, _name(found, steps[-1])


def _name(holder: Any, step: str) -> str | int:
    if isinstance(holder, dict):
        return step
    if not isinstance(holder, list):
        raise TypeError("neither an object nor a list")
    if step == "-":
        return len(holder)
    if not (step.isascii() and step.isdigit()):
        raise ValueError(f"{step!r} is no index")
    return int(step)


def _add(root: Object, steps: Sequence[str], value: Any) -> None:
    holder, last = _holder(root, steps)
    if isinstance(holder, dict):
        holder[last] = value
    elif last > len(holder):
        raise IndexError(last)
    else:
        holder.insert(last, value)


def _taken(root: Object, steps: Sequence[str]) -> Any:
    holder, last = _holder(root, steps)
    return holder.pop(last)
