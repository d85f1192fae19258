"""Patches: JSON merge patch and strategic merge patch.

Source: RFC 7386; the patchStrategy and patchMergeKey tags of k8s.io/api; apimachinery's strategicpatch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.fake_apiserver.registry.api_errors import new_bad_request
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
"""The merge keys of lists; other lists are replaced as a whole."""

_SET_FIELDS: Final = frozenset({"finalizers", "podCIDRs"})
"""Lists of strings that a patch extends."""

_DIRECTIVE: Final = "$patch"
_DELETE_PREFIX: Final = "$deleteFromPrimitiveList/"
_ORDER_PREFIX: Final = "$setElementOrder/"
_RETAIN_KEYS: Final = "$retainKeys"


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes a field, an object is merged, any other value replaces the field.

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
    if name in _SET_FIELDS:
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
            (index for index, existing in enumerate(result) if existing.get(merge_key) == element[merge_key]), None
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
    """Order the elements as in the patch; elements missing from the patch stay before elements that they preceded.

    New elements come first. Source: strategicpatch.normalizeElementOrder.
    """
    patch_positions, original_positions = (
        _map_positions_by_key(order, merge_key),
        _map_positions_by_key(original, merge_key),
    )
    patch_elements = sorted(
        (element for element in elements if _get_element_key(element, merge_key) in patch_positions),
        key=lambda element: patch_positions[_get_element_key(element, merge_key)],
    )
    other_elements = [element for element in elements if _get_element_key(element, merge_key) not in patch_positions]
    ordered_elements: list[Any] = []
    while patch_elements and other_elements:
        other_position, patch_element_position = (
            original_positions.get(_get_element_key(other_elements[0], merge_key)),
            original_positions.get(_get_element_key(patch_elements[0], merge_key)),
        )
        other_is_first = (
            other_position is not None
            and patch_element_position is not None
            and other_position < patch_element_position
        )
        ordered_elements.append((other_elements if other_is_first else patch_elements).pop(0))
    return [*ordered_elements, *patch_elements, *other_elements]


def _get_element_key(element: Any, merge_key: str | None) -> str:
    return str(element.get(merge_key) if isinstance(element, dict) and merge_key else element)


def _map_positions_by_key(elements: Sequence[Any], merge_key: str | None) -> dict[str, int]:
    return {_get_element_key(element, merge_key): index for index, element in enumerate(elements)}


def _reorder_lists(target: Object, patch: Object, kind: str) -> None:
    """Reorder lists that a patch mentions only with an element order."""
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
