"""Lists: whole or in pages, as they are now or as they were at a version.

Source: the API concepts page of Kubernetes, "Resource versions" and "Retrieving large results sets in chunks".
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.sandbox.asked import Asked
from extender.sandbox.refusals import RefusedError, bad_request, expired, invalid_options, too_large
from extender.sandbox.selecting import Selection, selection
from extender.sandbox.store import Kept, Store

_EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You must start a new list without"
    " the continue parameter."
)
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_MATCHES: Final = ("Exact", "NotOlderThan")


class _Token(msgspec.Struct, frozen=True):
    """Where the next page starts: behind this key, in the state of this version."""

    number: int
    key: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Page:
    """A list or a part of one.

    Attributes:
        version: the state it shows.
        items: the objects.
        token: for the next page; empty at the end.
        remaining: how many objects follow; None where that is not known.
    """

    version: int
    items: list[Kept]
    token: str = ""
    remaining: int | None = None


def chosen(asked: Asked) -> Selection:
    """What a list, watch or collective deletion is about: everything in its namespace that its selectors select.

    Raises:
        RefusedError: 400.
    """
    fields = asked.query.get("fieldSelector", "")
    if asked.name:
        fields = f"{fields},metadata.name={asked.name}"
    return selection(asked.kind, asked.namespace, asked.query.get("labelSelector", ""), fields)


def page(store: Store, asked: Asked) -> Page:
    """The page a request asks for.

    Raises:
        RefusedError: 400, 410 when the state asked for is forgotten, 422, or 504 when it is not reached yet.
    """
    wanted = chosen(asked)
    limit = asked.number("limit") or 0
    token = _read_token(asked.query.get("continue", ""))
    number, exact = _state(store, asked, token, limit)
    if asked.query.get("resourceVersion") == "0":
        limit = 0  # a list from the cache is not cut. Source: cacher.go
    try:
        state = store.at(asked.kind.place, number, asked.namespace) if exact else _now(store, asked)
    except RefusedError as refused:
        raise expired(_EXPIRED if token else _TOO_OLD) from refused
    items = [kept for kept in state if _behind(kept, token) and wanted.chooses(kept.object)]
    if not limit or len(items) <= limit:
        return Page(number, items)
    last = items[limit - 1].object["metadata"]
    following = _Token(number, (last.get("namespace", ""), last["name"]))
    remaining = len(items) - limit if wanted.is_whole else None
    return Page(number, items[:limit], _write_token(following), remaining)


def _now(store: Store, asked: Asked) -> list[Kept]:
    return store.all(asked.kind.place, asked.namespace)


def _state(store: Store, asked: Asked, token: _Token | None, limit: int) -> tuple[int, bool]:
    """The version to show, and whether it is one of the past."""
    version = asked.number("resourceVersion")
    match = asked.query.get("resourceVersionMatch", "")
    _check_match(match, version, token)
    if token is not None:
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        return token.number, True
    if version is not None and version > store.version:
        raise too_large(version, store.version)
    if version and (match == "Exact" or (limit and not match)):
        return version, True
    return store.version, False


def _check_match(match: str, version: int | None, token: _Token | None) -> None:
    if not match:
        return
    wrong = ""
    if version is None:
        wrong = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif token is not None:
        wrong = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match not in _MATCHES:
        wrong = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == 0:
        wrong = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if wrong:
        raise invalid_options("resourceVersionMatch", wrong)


def _behind(kept: Kept, token: _Token | None) -> bool:
    if token is None:
        return True
    meta = kept.object["metadata"]
    return (meta.get("namespace", ""), meta["name"]) > token.key


def _read_token(text: str) -> _Token | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, ValueError) as fault:
        raise bad_request(f"invalid continue token: continue key is not valid: {fault}") from fault


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()
