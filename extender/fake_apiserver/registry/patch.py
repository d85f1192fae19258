"""Apply JSON merge patches, strategic merge patches and JSON patches.

Source: RFC 7386, RFC 6902, RFC 6901; the patchStrategy and patchMergeKey tags of k8s.io/api;
apimachinery/pkg/util/strategicpatch/patch.go, StrategicMergePatch (1.36).
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from extender.fake_apiserver.registry.api_errors import new_bad_request, new_unprocessable
from extender.fake_apiserver.registry.resources import Object

_MERGE_KEYS: Final[Mapping[str, str]] = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "drivers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The merge key of each list of objects. A list without a merge key is replaced as a whole."""

_MERGED_STRING_LISTS: Final = frozenset({"finalizers", "podCIDRs"})
"""Lists of strings to which a patch adds its elements, instead of replacing the list."""

_DIRECTIVE: Final = "$patch"
_DELETE_PREFIX: Final = "$deleteFromPrimitiveList/"
_ORDER_PREFIX: Final = "$setElementOrder/"
_RETAIN_KEYS: Final = "$retainKeys"


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch.

    In the patch, null removes a field, an object is merged into the field, and any other value replaces the field.

    Source: RFC 7386.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result


def apply_strategic_merge_patch(target: Object, patch: Object, kind: str) -> Object:
    """Apply a strategic merge patch to an object of *kind*.

    Raises:
        StatusError: 400 if a list element lacks its merge key, or a directive is unknown.
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise new_bad_request(f"unknown patch type: {directive}")
    result = dict(target)
    if isinstance(retained_names := patch.get(_RETAIN_KEYS), list):
        result = {name: value for name, value in result.items() if name in retained_names}
    for name, value in patch.items():
        if name.startswith(_DELETE_PREFIX):
            field = name.removeprefix(_DELETE_PREFIX)
            result[field] = [element for element in result.get(field) or () if element not in value]
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            old_value = result.get(name)
            result[name] = apply_strategic_merge_patch(old_value if isinstance(old_value, dict) else {}, value, kind)
        elif isinstance(value, list):
            result[name] = _merge_list(name, result.get(name) or [], value, patch.get(_ORDER_PREFIX + name), kind)
        else:
            result[name] = value
    _reorder_lists(result, patch, kind)
    return result


def _get_merge_key(name: str, kind: str) -> str | None:
    return "port" if name == "ports" and kind == "Service" else _MERGE_KEYS.get(name)


def _merge_list(name: str, target: Sequence[Any], patch: list[Any], order: Any, kind: str) -> list[Any]:
    merge_key = _get_merge_key(name, kind)
    if name in _MERGED_STRING_LISTS:
        result = [*target, *(element for element in patch if element not in target)]
        return _order_elements(result, order if isinstance(order, list) else patch, target, None)
    if merge_key is None:
        return [element for element in patch if not (isinstance(element, dict) and set(element) == {_DIRECTIVE})]
    if {_DIRECTIVE: "replace"} in patch:
        return [element for element in patch if element != {_DIRECTIVE: "replace"}]
    result = list(target)
    for element in patch:
        if not isinstance(element, dict) or merge_key not in element:
            raise new_bad_request(f"map: {element} does not contain declared merge key: {merge_key}")
        index = next(
            (index for index, old_element in enumerate(result) if old_element.get(merge_key) == element[merge_key]),
            None,
        )
        if element.get(_DIRECTIVE) == "delete":
            if index is not None:
                del result[index]
        elif index is None:
            result.append(apply_strategic_merge_patch({}, element, kind))
        else:
            result[index] = apply_strategic_merge_patch(result[index], element, kind)
    return _order_elements(result, order if isinstance(order, list) else patch, target, merge_key)


def _order_elements(
    elements: list[Any], order: Sequence[Any], original: Sequence[Any], merge_key: str | None
) -> list[Any]:
    """Sort the elements of a patched list.

    The elements in *order* (listed) have that order. The elements that are not in *order* (unlisted) keep their order.
    The two sequences are merged: the next unlisted element precedes the next listed element if it does so in
    *original*. Otherwise the next listed element is first.

    Source: apimachinery/pkg/util/strategicpatch/patch.go, normalizeElementOrder (1.36).
    """
    order_positions, original_positions = (
        _map_positions_by_key(order, merge_key),
        _map_positions_by_key(original, merge_key),
    )
    listed_elements = sorted(
        (element for element in elements if _get_element_key(element, merge_key) in order_positions),
        key=lambda element: order_positions[_get_element_key(element, merge_key)],
    )
    unlisted_elements = [element for element in elements if _get_element_key(element, merge_key) not in order_positions]
    ordered_elements: list[Any] = []
    while listed_elements and unlisted_elements:
        unlisted_position, listed_position = (
            original_positions.get(_get_element_key(unlisted_elements[0], merge_key)),
            original_positions.get(_get_element_key(listed_elements[0], merge_key)),
        )
        unlisted_is_first = (
            unlisted_position is not None and listed_position is not None and unlisted_position < listed_position
        )
        ordered_elements.append((unlisted_elements if unlisted_is_first else listed_elements).pop(0))
    return [*ordered_elements, *listed_elements, *unlisted_elements]


def _get_element_key(element: Any, merge_key: str | None) -> str:
    return str(element.get(merge_key) if isinstance(element, dict) and merge_key else element)


def _map_positions_by_key(elements: Sequence[Any], merge_key: str | None) -> dict[str, int]:
    return {_get_element_key(element, merge_key): index for index, element in enumerate(elements)}


def _reorder_lists(target: Object, patch: Object, kind: str) -> None:
    """Reorder the lists for which the patch has a `$setElementOrder` directive but no elements."""
    for name, order in patch.items():
        field = name.removeprefix(_ORDER_PREFIX)
        elements = target.get(field)
        if (
            name.startswith(_ORDER_PREFIX)
            and field not in patch
            and isinstance(elements, list)
            and isinstance(order, list)
        ):
            target[field] = _order_elements(elements, order, elements, _get_merge_key(field, kind))


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
