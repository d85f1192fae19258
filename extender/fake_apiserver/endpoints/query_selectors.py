"""Label and field selectors of a query: `app in (a,b),!old`, `spec.nodeName=n1,status.phase!=Failed`."""

import re
from dataclasses import dataclass
from typing import Final

from extender.api.matching import Requirement, RequirementError, new_requirement
from extender.fake_apiserver.registry.api_errors import new_bad_request
from extender.fake_apiserver.registry.event_conversion import to_core_path
from extender.fake_apiserver.registry.resources import ApiResource, Object

_SET_REQUIREMENT: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_COMPARISON: Final = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^=!<>\s]*)")
_EXISTENCE: Final = re.compile(r"(?P<no>!?)\s*(?P<key>[^=!<>\s(),]+)")
_OPERATORS: Final = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_COMMA: Final = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True)
class ListSelector:
    """The namespace and selectors of a list or watch.

    Attributes:
        namespace: the namespace of the objects; empty: all namespaces.
        labels: the label requirements; all must match.
        fields: the field requirements (path, value, whether the field must be equal); all must match.
    """

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, content: Object) -> bool:
        """Return whether an object matches."""
        meta = content["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        labels = meta.get("labels") or {}
        return all(requirement.matches(labels.get(requirement.key)) for requirement in self.labels) and all(
            (get_field_value(content, path) == value) is must_be_equal for path, value, must_be_equal in self.fields
        )

    @property
    def selects_all(self) -> bool:
        """Whether only the namespace restricts the selection."""
        return not self.labels and not self.fields


def parse_selectors(resource: ApiResource, namespace: str, labels: str, fields: str) -> ListSelector:
    """Parse the label selector and the field selector.

    Raises:
        StatusError: 400 if a selector is invalid or has an unsupported field.
    """
    return ListSelector(namespace, _parse_labels(labels), _parse_fields(resource, fields))


def _parse_labels(text: str) -> tuple[Requirement, ...]:
    requirements = [requirement.strip() for requirement in _COMMA.split(text)] if text.strip() else []
    return tuple(_parse_requirement(requirement, text) for requirement in requirements)


def _parse_requirement(requirement: str, text: str) -> Requirement:
    try:
        if match := _SET_REQUIREMENT.fullmatch(requirement):
            values = tuple(value.strip() for value in match["values"].split(","))
            return new_requirement(match["key"], _OPERATORS[match["operator"]], values)
        if match := _COMPARISON.fullmatch(requirement):
            return new_requirement(match["key"], _OPERATORS[match["operator"]], (match["value"],))
        if match := _EXISTENCE.fullmatch(requirement):
            return new_requirement(match["key"], "DoesNotExist" if match["no"] else "Exists", ())
    except RequirementError as error:
        raise new_bad_request(f"unable to parse requirement: {error}") from error
    raise new_bad_request(f"couldn't parse the selector string {text!r}: unable to parse requirement {requirement!r}")


def _parse_fields(resource: ApiResource, text: str) -> tuple[tuple[str, str, bool], ...]:
    requirements = []
    for requirement in text.split(","):
        if not requirement.strip():
            continue
        path, equals_sign, value = requirement.partition("=")
        if not equals_sign:
            raise new_bad_request(f"invalid selector: '{text}'; can't understand '{requirement}'")
        must_be_equal = not path.endswith("!")
        path = path.removesuffix("!").strip()
        if path not in {"metadata.name", "metadata.namespace", *resource.selectable_fields}:
            raise new_bad_request(f"field label not supported: {path}")
        if resource.group_version == "events.k8s.io/v1":  # events are stored as core/v1
            path = to_core_path(path)
        requirements.append((path, value.removeprefix("=").strip(), must_be_equal))
    return tuple(requirements)


def get_field_value(content: Object, path: str) -> str:
    """Return the value of a field as text for a selector; empty if the field is absent."""
    value: object = content
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if path == "source" and isinstance(value, dict):  # the component of core/v1 events
        value = value.get("component") or content.get("reportingComponent")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(value)
