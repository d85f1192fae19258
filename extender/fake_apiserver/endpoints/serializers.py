"""Encode lists, single objects and watch events in the form that the client accepts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.fake_apiserver.endpoints.listing import read_list_page
from extender.fake_apiserver.endpoints.printers import make_partial_metadata, print_table
from extender.fake_apiserver.endpoints.request_info import RequestInfo
from extender.fake_apiserver.endpoints.watch import WatchEvent
from extender.fake_apiserver.registry.api_errors import new_not_acceptable
from extender.fake_apiserver.registry.event_conversion import to_events_v1_event
from extender.fake_apiserver.registry.resources import ApiResource, Object
from extender.fake_apiserver.registry.store import Store, StoredObject

_OBJECT_FORM: Final = ""
_TABLE_FORM: Final = "Table"
_PARTIAL_FORMS: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_JSON_MEDIA_TYPES: Final = ("application/json", "application/*", "*/*", "")


@dataclass(frozen=True, slots=True)
class Serializer:
    """Encodes responses in the form that the client requests.

    Attributes:
        form: `Table`, `PartialObjectMetadata` or `PartialObjectMetadataList`; empty for complete objects.
        include_object: the part of each object in a table row: `None`, `Metadata` or `Object`.
    """

    form: str = _OBJECT_FORM
    include_object: str = "Metadata"

    def encode_list(self, store: Store, request: RequestInfo, now: float) -> bytes:
        """Encode the requested list.

        Raises:
            StatusError: `read_list_page` fails.
        """
        page = read_list_page(store, request)
        meta: Object = {"resourceVersion": str(page.resource_version)}
        if page.continue_token:
            meta["continue"] = page.continue_token
        if page.remaining_count is not None:
            meta["remainingItemCount"] = page.remaining_count
        resource = request.resource
        items = [_convert_version(resource, stored_object) for stored_object in page.items]
        if self.form == _TABLE_FORM:
            rows = [item.content for item in items]
            return msgspec.json.encode(print_table(resource, rows, now, meta, self.include_object))
        if self.form in _PARTIAL_FORMS:
            document: Object = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
            return msgspec.json.encode({**document, "items": [make_partial_metadata(item.content) for item in items]})
        list_head = msgspec.json.encode(
            {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": meta}
        )
        return list_head[:-1] + b',"items":[' + b",".join(item.item_json for item in items) + b"]}"

    def convert_object(self, request: RequestInfo, content: Object, now: float) -> Object:
        """Convert one object to the requested form."""
        converted_content = _convert_version(request.resource, StoredObject(content, 0)).content
        if self.form == _TABLE_FORM:
            meta = {"resourceVersion": content["metadata"].get("resourceVersion", "")}
            return print_table(request.resource, [converted_content], now, meta, self.include_object)
        return make_partial_metadata(content) if self.form in _PARTIAL_FORMS else converted_content

    def encode_watch_event(self, request: RequestInfo, event: WatchEvent, now: float, *, with_columns: bool) -> bytes:
        """Encode a watch event as a line. *with_columns* includes the column definitions in a table."""
        stored_object = event.stored_object
        if event.type != "ERROR":
            stored_object = _convert_version(request.resource, stored_object)
        if event.type == "ERROR" or self.form == _OBJECT_FORM:
            object_json = stored_object.json
        elif self.form == _TABLE_FORM:
            rows = [] if event.type == "BOOKMARK" else [stored_object.content]
            meta = {"resourceVersion": stored_object.content["metadata"]["resourceVersion"]}
            table = print_table(request.resource, rows, now, meta, self.include_object, with_columns=with_columns)
            object_json = msgspec.json.encode(table)
        else:
            object_json = msgspec.json.encode(make_partial_metadata(stored_object.content))
        return b'{"type":"' + event.type.encode() + b'","object":' + object_json + b"}\n"


def negotiate_serializer(accept: str, query: Mapping[str, str]) -> Serializer:
    """Return the serializer for the first supported form in the Accept header.

    Raises:
        StatusError: 406 if no accepted form is supported.
    """
    for accepted_form in accept.split(","):
        media_type, *parameters = (parameter.strip() for parameter in accepted_form.split(";"))
        options = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        form = options.get("as", _OBJECT_FORM)
        if media_type in _JSON_MEDIA_TYPES and form in {_OBJECT_FORM, _TABLE_FORM, *_PARTIAL_FORMS}:
            return Serializer(form, query.get("includeObject", "") or "Metadata")
    raise new_not_acceptable()


def _convert_version(resource: ApiResource, stored_object: StoredObject) -> StoredObject:
    """Return the object in the version of *resource*. Events are stored in core/v1."""
    if resource.group_version != "events.k8s.io/v1":
        return stored_object
    return StoredObject(to_events_v1_event(stored_object.content), stored_object.resource_version)
