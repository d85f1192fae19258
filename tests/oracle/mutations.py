"""Makes scenarios from the recorded ones: objects of two, with values that other objects have in the same field.

The recorded scenarios have combinations of fields that the generator does not make. A mutated object may be invalid, so
that an API server would reject it; then a difference has no meaning.
"""

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any, Final

import msgspec

from tests.parity.golden import list_all_scenarios, read_scenario

Path = tuple[str, ...]
Position = tuple[Any, Any, Path]
"""A dict or list, a key or an index in it, and the path of the value there."""

_KEYS_OF_USERS: Final = frozenset(
    ("allocatable", "annotations", "attributes", "capacity", "counters", "labels", "limits", "matchLabels",
     "nodeSelector", "requests")
)  # fmt: skip
"""The fields whose keys are names, so that all their values have the same path."""

_SKIPPED_KEYS: Final = frozenset(("apiVersion", "creationTimestamp", "generation", "kind", "resourceVersion", "uid"))
_CHANGED_METADATA: Final = frozenset(("annotations", "labels", "ownerReferences"))
_MAX_OBJECTS: Final = 260
_MAX_ELEMENTS: Final = 12


def mutate_recorded_scenario(seed: str, number: int) -> dict[str, Any]:
    """Return mutated scenario *number* of a seed; it does not depend on other numbers."""
    rng = Random(f"{seed}/{number}/mutation")
    base, other = (deepcopy(rng.choice(_read_recorded_scenarios())) for _ in range(2))
    items = _join(base["items"], other["items"], rng)
    scenario = {**base, "items": items, "metadata": {"name": f"mutated-{seed}-{number}", "category": "mutated"}}
    if rng.random() < 0.4:
        configurations = [each["config"] for each in _read_recorded_scenarios() if "config" in each]
        scenario["config"] = deepcopy(rng.choice(configurations))
    for _ in range(rng.choice((0, 3, 10, 30, 60))):
        item = rng.choice(items)
        _mutate(item, (item["kind"],), rng)
    for item in items:
        _make_valid(item)
    items.sort(key=_get_key)  # the oracle sorts nodes by name before it selects the first of equal ones
    return scenario


@cache
def _read_recorded_scenarios() -> tuple[dict[str, Any], ...]:
    return tuple(msgspec.json.decode(read_scenario(name), type=dict[str, Any]) for name in list_all_scenarios())


@cache
def _read_values() -> dict[Path, list[Any]]:
    """Return all values of the recorded objects by path."""
    values: dict[Path, list[Any]] = defaultdict(list)
    for scenario in _read_recorded_scenarios():
        for item in scenario["items"]:
            for container, key, path in _walk(item, (item["kind"],)):
                values[path].append(container[key])
    return dict(values)


def _walk(value: Any, path: Path) -> Iterator[Position]:
    """Yield the positions of all values below *value*."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = [(key, "*" if path[-1] in _KEYS_OF_USERS else key) for key in value if key not in _SKIPPED_KEYS]
    elif isinstance(value, list):
        entries = [(index, "[]") for index in range(len(value))]
    for key, name in entries:
        yield value, key, (*path, name)
        yield from _walk(value[key], (*path, name))


def _get_key(item: dict[str, Any]) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _join(items: list[Any], other_items: list[Any], rng: Random) -> list[Any]:
    """Return most of *items*, with some of *other_items*: none, half of them, or those of one kind."""
    keys = {_get_key(item) for item in items}
    kind = rng.choice(other_items)["kind"]
    share = rng.choice((0.0, 0.0, 0.5))
    joined = [*items]
    for item in other_items:
        is_taken = rng.random() < share or (share == 0.0 and item["kind"] == kind)
        if is_taken and _get_key(item) not in keys:
            joined.append(item)
    dropped_share = rng.choice((0.0, 0.0, 0.15))
    joined = [item for item in joined if item["kind"] == "Namespace" or rng.random() >= dropped_share]
    return joined if len(joined) <= _MAX_OBJECTS else rng.sample(joined, _MAX_OBJECTS)


def _may_change(path: Path) -> bool:
    return path[1] != "metadata" or (path[2:3] != () and path[2] in _CHANGED_METADATA)


def _mutate(item: Any, path: Path, rng: Random) -> None:
    """Replace, insert, add or remove one value below *item*."""
    positions = [position for position in _walk(item, path) if _may_change(position[2])]
    if not positions:
        return
    container, key, path = rng.choice(positions)
    values, chance = _read_values(), rng.random()
    choices = values.get(path, [])
    if chance < 0.72 and choices:
        container[key] = deepcopy(rng.choice(choices))
    elif isinstance(container, list):
        if chance < 0.86 and choices and len(container) < _MAX_ELEMENTS:
            container.insert(key, deepcopy(rng.choice(choices)))
        elif len(container) > 1:
            del container[key]
    elif path[-1] == "*":
        del container[key]
    else:
        _add_field(container, rng.choice(values[path[:-1]]) if path[:-1] in values else {}, rng)


def _add_field(target: dict[str, Any], source: dict[str, Any], rng: Random) -> None:
    missing = [key for key in source if key not in target and key not in (*_SKIPPED_KEYS, "name", "namespace")]
    if missing:
        key = rng.choice(missing)
        target[key] = deepcopy(source[key])


def _make_valid(item: dict[str, Any]) -> None:
    """Set the requests that an API server derives from limits, and remove what only a pod on a node can have."""
    if item["kind"] != "Pod":
        return
    spec, conditions = item["spec"], item.get("status", {}).get("conditions")
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    for owner in (spec, *containers):
        resources = owner.get("resources") or {}
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    pod_requests = (spec.get("resources") or {}).get("requests", {})
    if any(key not in pod_requests for each in containers for key in (each.get("resources") or {}).get("requests", {})):
        spec.pop("resources", None)
    if conditions and not spec.get("nodeName"):
        item["status"]["conditions"] = [each for each in conditions if each["type"] != "PodResizePending"]
