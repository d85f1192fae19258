"""How answers are written: objects, tables, or just their metadata; lists, and the lines of a watch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.sandbox.asked import Asked
from extender.sandbox.event_forms import to_new
from extender.sandbox.listing import page
from extender.sandbox.refusals import not_acceptable
from extender.sandbox.served import Object, Served
from extender.sandbox.store import Kept, Store
from extender.sandbox.tables import table
from extender.sandbox.watching import Told

_OBJECTS: Final = ""
_TABLE: Final = "Table"
_PARTIAL: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_JSON: Final = ("application/json", "application/*", "*/*", "")


@dataclass(frozen=True, slots=True)
class Rendering:
    """The form a caller wants.

    Attributes:
        form: empty, `Table`, `PartialObjectMetadata` or its list.
        include: what of each object a table carries: `None`, `Metadata` or `Object`.
    """

    form: str = _OBJECTS
    include: str = "Metadata"

    def page(self, store: Store, asked: Asked, now: float) -> bytes:
        """The list that is asked for.

        Raises:
            RefusedError: as `listing.page`.
        """
        found = page(store, asked)
        meta: Object = {"resourceVersion": str(found.version)}
        if found.token:
            meta["continue"] = found.token
        if found.remaining is not None:
            meta["remainingItemCount"] = found.remaining
        kind = asked.kind
        if self.form == _TABLE:
            shown = [_shown(kind, kept.object) for kept in found.items]
            return msgspec.json.encode(table(kind, shown, now, meta, self.include))
        if self.form in _PARTIAL:
            head: Object = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
            return msgspec.json.encode({**head, "items": [_partial(kept.object) for kept in found.items]})
        start = msgspec.json.encode({"kind": f"{kind.kind}List", "apiVersion": kind.version, "metadata": meta})
        return start[:-1] + b',"items":[' + b",".join(_bare(kind, kept) for kept in found.items) + b"]}"

    def one(self, asked: Asked, thing: Object, now: float) -> Object:
        """One object."""
        shown = _shown(asked.kind, thing)
        if self.form == _TABLE:
            meta = {"resourceVersion": thing["metadata"].get("resourceVersion", "")}
            return table(asked.kind, [shown], now, meta, self.include)
        return _partial(thing) if self.form in _PARTIAL else shown

    def line(self, asked: Asked, told: Told, now: float, *, heads: bool) -> bytes:
        """One event of a watch, with its line feed; *heads*: a table with its columns."""
        kept = told.kept
        if told.type == "ERROR" or self.form == _OBJECTS:
            text = kept.json if told.type in {"ERROR", "BOOKMARK"} else _text(asked.kind, kept)
        elif self.form == _TABLE:
            rows = [] if told.type == "BOOKMARK" else [_shown(asked.kind, kept.object)]
            meta = {"resourceVersion": kept.object["metadata"]["resourceVersion"]}
            text = msgspec.json.encode(table(asked.kind, rows, now, meta, self.include, heads=heads))
        else:
            text = msgspec.json.encode(_partial(kept.object))
        return b'{"type":"' + told.type.encode() + b'","object":' + text + b"}\n"


def rendering(accept: str, query: Mapping[str, str]) -> Rendering:
    """Reads what a caller accepts: the first form it names that is written here.

    Raises:
        RefusedError: 406, there is none.
    """
    for choice in accept.split(","):
        media, *rest = (part.strip() for part in choice.split(";"))
        options = dict(part.split("=", 1) for part in rest if "=" in part)
        form = options.get("as", _OBJECTS)
        if media in _JSON and form in {_OBJECTS, _TABLE, *_PARTIAL}:
            return Rendering(form, query.get("includeObject", "") or "Metadata")
    raise not_acceptable()


def _shown(kind: Served, thing: Object) -> Object:
    return to_new(thing) if kind.version == "events.k8s.io/v1" else thing


def _text(kind: Served, kept: Kept) -> bytes:
    return msgspec.json.encode(to_new(kept.object)) if kind.version == "events.k8s.io/v1" else kept.json


def _bare(kind: Served, kept: Kept) -> bytes:
    return Kept(to_new(kept.object), 0).bare if kind.version == "events.k8s.io/v1" else kept.bare


def _partial(thing: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": thing["metadata"]}
