"""Read lists from the store. A list is complete or in chunks, and current or at an older resource version.

Source: the API concepts page of Kubernetes, "Resource versions" and "Retrieving large results sets in chunks".
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.fake_apiserver.endpoints.query_selectors import ListSelector, parse_selectors
from extender.fake_apiserver.endpoints.request_info import RequestInfo
from extender.fake_apiserver.registry.api_errors import (
    StatusError,
    new_bad_request,
    new_expired,
    new_invalid_options,
    new_too_large_resource_version,
)
from extender.fake_apiserver.registry.store import Store, StoredObject

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
    limit = request.parse_int_param("limit") or 0
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
        raise new_invalid_options("resourceVersionMatch", message)


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
