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
            after[name] = _list(name, after.get(name) or [], value, patch.get(_ORDER + name), kind)
        else:
            after[name] = value
    _reordered(after, patch, kind)
    return after


def _key(name: str, kind: str) -> str | None:
    return "port" if name == "ports" and kind == "Service" else _KEYS.get(name)


def _list(name: str, before: Sequence[Any], patch: list[Any], order: Any, kind: str) -> list[Any]:
    key = _key(name, kind)
    if name in _SETS:
        after = [*before, *(each for each in patch if each not in before)]
        return _ordered(after, order if isinstance(order, list) else patch, before, None)
    if key is None:
        return [each for each in patch if not (isinstance(each, dict) and set(each) == {_DIRECTIVE})]
    if {_DIRECTIVE: "replace"} in patch:
        return [each for each in patch if each != {_DIRECTIVE: "replace"}]
    after = list(before)
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
    return _ordered(after, order if isinstance(order, list) else patch, before, key)


def _ordered(after: list[Any], order: Sequence[Any], before: Sequence[Any], key: str | None) -> list[Any]:
    """The elements in the order the patch names them; the others stay before those that they stood before.

    So what is new comes first. Source: strategicpatch.normalizeElementOrder.
    """
    wanted, stood = _places(order, key), _places(before, key)
    named = sorted((each for each in after if _mark(each, key) in wanted), key=lambda it: wanted[_mark(it, key)])
    others = [each for each in after if _mark(each, key) not in wanted]
    made: list[Any] = []
    while named and others:
        theirs, ours = stood.get(_mark(others[0], key)), stood.get(_mark(named[0], key))
        stays = theirs is not None and ours is not None and theirs < ours
        made.append((others if stays else named).pop(0))
    return [*made, *named, *others]


def _mark(each: Any, key: str | None) -> str:
    return str(each.get(key) if isinstance(each, dict) and key else each)


def _places(elements: Sequence[Any], key: str | None) -> dict[str, int]:
    return {_mark(each, key): at for at, each in enumerate(elements)}


def _reordered(after: Object, patch: Object, kind: str) -> None:
    """Put those lists in order of which a patch names the order and nothing else."""
    for name, order in patch.items():
        field = name.removeprefix(_ORDER)
        present = after.get(field)
        if name.startswith(_ORDER) and field not in patch and isinstance(present, list) and isinstance(order, list):
            after[field] = _ordered(present, order, present, _key(field, kind))
