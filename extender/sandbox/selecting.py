"""Label and field selectors as texts in a query: `app in (a,b),!old`, `spec.nodeName=n1,status.phase!=Failed`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.objects.matching import ConditionError, Requirement, requirement
from extender.sandbox.event_forms import core_path
from extender.sandbox.refusals import bad_request
from extender.sandbox.served import Object, Served

Chosen = Callable[[Object], bool]

_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_COMPARED: Final = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^=!<>\s]*)")
_PRESENT: Final = re.compile(r"(?P<no>!?)\s*(?P<key>[^=!<>\s(),]+)")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_COMMA: Final = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch is asked for.

    Attributes:
        namespace: only objects in it; empty: all.
        labels: conditions on labels; all must hold.
        fields: (path, value, whether it must be equal); all must hold.
    """

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()

    def chooses(self, content: Object) -> bool:
        """Whether an object is meant."""
        meta = content["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        labels = meta.get("labels") or {}
        return all(rule.matches(labels.get(rule.key)) for rule in self.labels) and all(
            (field_of(content, path) == value) is equal for path, value, equal in self.fields
        )

    @property
    def is_whole(self) -> bool:
        """Whether nothing but the namespace narrows it."""
        return not self.labels and not self.fields


def selection(kind: Served, namespace: str, labels: str, fields: str) -> Selection:
    """Reads both selectors.

    Raises:
        RefusedError: 400, as one cannot be read or asks for a field that the kind does not offer.
    """
    return Selection(namespace, _labels(labels), _fields(kind, fields))


def _labels(text: str) -> tuple[Requirement, ...]:
    parts = [part.strip() for part in _COMMA.split(text)] if text.strip() else []
    return tuple(_label(part, text) for part in parts)


def _label(part: str, text: str) -> Requirement:
    try:
        if found := _SET.fullmatch(part):
            values = tuple(value.strip() for value in found["values"].split(","))
            return requirement(found["key"], _OPERATORS[found["operator"]], values)
        if found := _COMPARED.fullmatch(part):
            return requirement(found["key"], _OPERATORS[found["operator"]], (found["value"],))
        if found := _PRESENT.fullmatch(part):
            return requirement(found["key"], "DoesNotExist" if found["no"] else "Exists", ())
    except ConditionError as fault:
        raise bad_request(f"unable to parse requirement: {fault}") from fault
    raise bad_request(f"couldn't parse the selector string {text!r}: unable to parse requirement {part!r}")


def _fields(kind: Served, text: str) -> tuple[tuple[str, str, bool], ...]:
    found = []
    for part in text.split(","):
        if not part.strip():
            continue
        path, sign, value = part.partition("=")
        if not sign:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        equal = not path.endswith("!")
        path = path.removesuffix("!").strip()
        if path not in {"metadata.name", "metadata.namespace", *kind.fields}:
            raise bad_request(f"field label not supported: {path}")
        if kind.version == "events.k8s.io/v1":  # events are kept in the core's form
            path = core_path(path)
        found.append((path, value.removeprefix("=").strip(), equal))
    return tuple(found)


def field_of(content: Object, path: str) -> str:
    """The value of a field as a selector compares it; empty when absent."""
    here: object = content
    for part in path.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    if path == "source" and isinstance(here, dict):  # the component of the older form of events
        here = here.get("component") or content.get("reportingComponent")
    if isinstance(here, bool):
        return "true" if here else "false"
    if here is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(here)
