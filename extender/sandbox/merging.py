"""What a patch makes of an object: JSON merge patch, and the strategic kind, which knows what lists are lists of.

Source: RFC 7386; the patchStrategy and patchMergeKey tags of k8s.io/api; apimachinery's strategicpatch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.sandbox.refusals import bad_request
from extender.sandbox.served import Object

_KEYS: Final[Mapping[str, str]] = {
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
"""Lists whose elements are told apart by a field, and that field; any other list is replaced as a whole."""

_SETS: Final = frozenset({"finalizers", "podCIDRs"})
"""Lists of texts to which a patch adds."""

_DIRECTIVE: Final = "$patch"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"
_RETAIN: Final = "$retainKeys"


def merge(before: Any, patch: Any) -> Any:
    """A JSON merge patch applied: null removes, an object goes into an object, all else replaces. Source: RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    after = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = merge(after.get(name), value)
    return after


def strategic_merge(before: Object, patch: Object, kind: str) -> Object:
    """A strategic merge patch applied to an object of *kind*.

    Raises:
        RefusedError: 400, an element of a list lacks the field it is told apart by, or a directive is unknown.
    """
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise bad_request(f"unknown patch type: {directive}")
    after = dict(before)
    if isinstance(retained := patch.get(_RETAIN), list):
        after = {name: value for name, value in after.items() if name in retained}
    for name, value in patch.items():
        if name.startswith(_DELETE):
            field = name.removeprefix(_DELETE)
            after[field] = [each for each in after.get(field) or () if each not in value]
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            inside = after.get(name)
            after[name] = strategic_merge(inside if isinstance(inside, dict) else {}, value, kind)
        elif isinstance(value, list):
            after[name] = _list(name, after.get(name) or [], value, kind)
        else:
            after[name] = value
    _reorder(after, patch, kind)
    return after


def _key(name: str, kind: str) -> str | None:
    return "port" if name == "ports" and kind == "Service" else _KEYS.get(name)


def _list(name: str, before: Sequence[Any], patch: list[Any], kind: str) -> list[Any]:
    if name in _SETS:
        return [*before, *(each for each in patch if each not in before)]
    key = _key(name, kind)
    if key is None:
        return [each for each in patch if not (isinstance(each, dict) and set(each) == {_DIRECTIVE})]
    after = list(before)
    if {_DIRECTIVE: "replace"} in patch:
        return [each for each in patch if each != {_DIRECTIVE: "replace"}]
    for each in patch:
        if not isinstance(each, dict) or key not in each:
            raise bad_request(f"map: {each} does not contain declared merge key: {key}")
        at = next((at for at, old in enumerate(after) if old.get(key) == each[key]), None)
        if each.get(_DIRECTIVE) == "delete":
            if at is not None:
                del after[at]
        elif at is None:
            after.append(strategic_merge({}, each, kind))
        else:
            after[at] = strategic_merge(after[at], each, kind)
    return after


def _reorder(after: Object, patch: Object, kind: str) -> None:
    """Put lists in the order the patch wants; what it does not name keeps its place behind."""
    for name, order in patch.items():
        if not name.startswith(_ORDER) or not isinstance(order, list):
            continue
        field = name.removeprefix(_ORDER)
        key = _key(field, kind)
        present = after.get(field)
        if not isinstance(present, list):
            continue
        wanted = [each.get(key) if isinstance(each, dict) and key else each for each in order]
        places = {str(value): at for at, value in enumerate(wanted)}

        def place(each: Any, key: str | None = key, places: dict[str, int] = places) -> int:
            value = each.get(key) if isinstance(each, dict) and key else each
            return places.get(str(value), len(places))

        after[field] = sorted(present, key=place)
