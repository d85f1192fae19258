"""Read lists from the store. A list is complete or in chunks, and current or at an older resource version.

Source: the API concepts page of Kubernetes, "Resource versions" and "Retrieving large results sets in chunks".
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.api.label_selectors import parse_label_selector
from extender.api.matching import Requirement
from extender.fake_apiserver.endpoints.printer_cells import get_field
from extender.fake_apiserver.endpoints.request_info import RequestInfo
from extender.fake_apiserver.registry.api_errors import (
    StatusError,
    new_bad_request,
    new_expired,
    new_invalid_options,
    new_too_large_resource_version,
)
from extender.fake_apiserver.registry.event_conversion import to_core_field_path
from extender.fake_apiserver.registry.resources import ApiResource, Object
from extender.fake_apiserver.registry.store import Store, StoredObject


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


_CONTINUE_EXPIRED_MESSAGE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You must start a new list without"
    " the continue parameter."
)
_TOO_OLD_MESSAGE: Final = "The resourceVersion for the provided list is too old."
_VERSION_MATCHES: Final = ("Exact", "NotOlderThan")


class _ContinueToken(msgspec.Struct, frozen=True):
    """The position of the next chunk: the key of the last returned object, and the resource version of the list."""

    resource_version: int
    key: tuple[str, str]


@dataclass(frozen=True, slots=True)
class ListPage:
    """A complete list, or one chunk of a list.

    Attributes:
        continue_token: the token of the next chunk; empty at the end.
        remaining_count: the number of objects after the chunk; None if unknown.
    """

    resource_version: int
    items: list[StoredObject]
    continue_token: str = ""
    remaining_count: int | None = None


def parse_list_selector(request: RequestInfo) -> ListSelector:
    """Return the selector of a list, watch or deletecollection.

    Raises:
        StatusError: 400 if a selector is invalid.
    """
    fields = request.query.get("fieldSelector", "")
    if request.name:
        fields = f"{fields},metadata.name={request.name}"
    return parse_selectors(request.resource, request.namespace, request.query.get("labelSelector", ""), fields)


def read_list_page(store: Store, request: RequestInfo) -> ListPage:
    """Return the requested list, or the requested chunk of it.

    Raises:
        StatusError: 400 or 422, a parameter is invalid; 410, the requested version is too old; 504, the version is in
            the future.
    """
    selector = parse_list_selector(request)
    limit = max(0, request.parse_int_param("limit") or 0)  # a negative limit is none
    token = _decode_token(request.query.get("continue", ""))
    resource_version, is_exact = _resolve_version(store, request, token, limit)
    if request.query.get("resourceVersion") == "0":
        # The watch cache returns complete lists.
        # Source: apiserver/pkg/storage/cacher/cacher.go, computeListLimit (1.36).
        limit = 0
    try:
        objects = (
            store.list_objects_at(request.resource.storage_key, resource_version, request.namespace)
            if is_exact
            else store.list_objects(request.resource.storage_key, request.namespace)
        )
    except StatusError as error:
        raise new_expired(_CONTINUE_EXPIRED_MESSAGE if token else _TOO_OLD_MESSAGE) from error
    items = [
        stored_object
        for stored_object in objects
        if _is_after_token(stored_object, token) and selector.matches(stored_object.content)
    ]
    if not limit or len(items) <= limit:
        return ListPage(resource_version, items)
    last_meta = items[limit - 1].content["metadata"]
    next_token = _ContinueToken(resource_version, (last_meta.get("namespace", ""), last_meta["name"]))
    remaining_count = len(items) - limit if selector.selects_all else None
    return ListPage(resource_version, items[:limit], _encode_token(next_token), remaining_count)


def _resolve_version(store: Store, request: RequestInfo, token: _ContinueToken | None, limit: int) -> tuple[int, bool]:
    """Return the resource version of the list, and whether the list must be read at exactly that version."""
    requested_version = request.parse_int_param("resourceVersion")
    version_match = request.query.get("resourceVersionMatch", "")
    _validate_version_match(version_match, requested_version, token)
    if token is not None:
        if requested_version:
            raise new_bad_request("specifying resource version is not allowed when using continue")
        return token.resource_version, True
    if requested_version is not None and requested_version > store.resource_version:
        raise new_too_large_resource_version(requested_version, store.resource_version)
    if requested_version and (version_match == "Exact" or (limit and not version_match)):
        return requested_version, True
    return store.resource_version, False


def _validate_version_match(match: str, version: int | None, token: _ContinueToken | None) -> None:
    if not match:
        return
    message = ""
    if version is None:
        message = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif token is not None:
        message = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match not in _VERSION_MATCHES:
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == 0:
        message = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if message:
        raise new_invalid_options(message)


def _is_after_token(stored_object: StoredObject, token: _ContinueToken | None) -> bool:
    if token is None:
        return True
    meta = stored_object.content["metadata"]
    return (meta.get("namespace", ""), meta["name"]) > token.key


def _decode_token(text: str) -> _ContinueToken | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_ContinueToken)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, ValueError) as error:
        raise new_bad_request(f"invalid continue token: continue key is not valid: {error}") from error


def _encode_token(token: _ContinueToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()
