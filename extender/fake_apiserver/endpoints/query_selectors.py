"""Parse the label and field selectors of a list or watch.

A label selector is `app in (a,b),!old`, for example. A field selector is `spec.nodeName=n1,status.phase!=Failed`.
"""

from dataclasses import dataclass

from extender.api.label_selectors import parse_label_selector
from extender.api.matching import Requirement
from extender.fake_apiserver.endpoints.printer_cells import get_field
from extender.fake_apiserver.registry.api_errors import new_bad_request
from extender.fake_apiserver.registry.event_conversion import to_core_field_path
from extender.fake_apiserver.registry.resources import ApiResource, Object


@dataclass(frozen=True, slots=True)
class ListSelector:
    """The namespace and selectors of a list or watch.

    Attributes:
        namespace: the namespace of the objects; empty: all namespaces.
        labels: the requirements on labels, all of which must match.
        fields: the requirements on fields, all of which must match. A requirement has the path of the field, a value,
            and whether the field must be equal to the value (else it must differ).
    """

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, content: Object) -> bool:
        """Return whether an object is in the namespace and matches the selectors."""
        meta = content["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        labels = meta.get("labels") or {}
        return all(requirement.matches(labels.get(requirement.key)) for requirement in self.labels) and all(
            (get_field_value(content, path) == value) is must_be_equal for path, value, must_be_equal in self.fields
        )

    @property
    def selects_all(self) -> bool:
        """Whether there are no requirements, so that all objects in the namespace match."""
        return not self.labels and not self.fields


def parse_selectors(resource: ApiResource, namespace: str, labels: str, fields: str) -> ListSelector:
    """Parse the label selector and the field selector.

    Raises:
        StatusError: 400 if a selector is invalid or has an unsupported field.
    """
    return ListSelector(namespace, _parse_labels(labels), _parse_fields(resource, fields))


def _parse_labels(text: str) -> tuple[Requirement, ...]:
    try:
        return parse_label_selector(text)
    except ValueError as error:
        raise new_bad_request(str(error)) from error


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
            path = to_core_field_path(path)
        requirements.append((path, value.removeprefix("=").strip(), must_be_equal))
    return tuple(requirements)


def get_field_value(content: Object, path: str) -> str:
    """Return the value of a field as text for a selector; empty if the field is absent."""
    value = get_field(content, path, None)
    if path == "source" and isinstance(value, dict):  # the component of core/v1 events
        value = value.get("component") or content.get("reportingComponent")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    return str(value)
