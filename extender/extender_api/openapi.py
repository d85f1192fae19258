"""The OpenAPI document of the verbs, made from the payload types of extender/v1."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, Final

import msgspec

from extender.api.extender_v1 import (
    ArgsByNames,
    ArgsByNodes,
    BindingArgs,
    BindingResult,
    FilterResult,
    HostPriority,
    PreemptionArgsByPod,
    PreemptionArgsByUid,
    PreemptionResult,
)
from extender.extender_api.bind import BindVerb
from extender.extender_api.verbs import Verbs
from extender.serving.health import PLAIN_TEXT_CONTENT

Schema = dict[str, Any]

_REF_TEMPLATE: Final = "#/components/schemas/{name}"


@dataclass(frozen=True, slots=True)
class _Operation:
    """The operation of one verb.

    Attributes:
        handler: the verb; its docstring is the summary.
        request_types: the forms of the request.
        can_fail: whether a failed decision has status 500.
    """

    handler: Callable[..., Awaitable[Any]]
    request_types: tuple[type, ...]
    response_type: Any
    can_fail: bool = False


_OPERATIONS: Final[Mapping[str, _Operation]] = {
    "filter": _Operation(Verbs.filter, (ArgsByNames, ArgsByNodes), FilterResult),
    "prioritize": _Operation(Verbs.prioritize, (ArgsByNames, ArgsByNodes), list[HostPriority], can_fail=True),
    "preempt": _Operation(Verbs.preempt, (PreemptionArgsByUid, PreemptionArgsByPod), PreemptionResult, can_fail=True),
    "bind": _Operation(BindVerb.bind, (BindingArgs,), BindingResult),
}

_STATUS_CONTENT: Final[Schema] = {
    "application/json": {"schema": {"type": "object", "description": "A metav1.Status of the failure."}}
}
_ERROR_RESPONSES: Final[Schema] = {
    "400": {"description": "The body is invalid; the message names the field.", "content": PLAIN_TEXT_CONTENT},
    "401": {"description": "A client certificate is required.", "content": _STATUS_CONTENT},
    "403": {"description": "The client certificate is not allowed.", "content": _STATUS_CONTENT},
    "413": {"description": "The body is too big.", "content": PLAIN_TEXT_CONTENT},
    "415": {
        "description": "The body is compressed, or the Content-Type of a bind request is not JSON.",
        "content": PLAIN_TEXT_CONTENT,
    },
    "503": {
        "description": "The cache is not synced yet, or too many requests are waiting.",
        "content": PLAIN_TEXT_CONTENT,
    },
}
_DECISION_FAILED: Final[Schema] = {
    "500": {"description": "The decision failed; the message names the plugin.", "content": PLAIN_TEXT_CONTENT}
}


def make_explain_operation() -> Schema:
    """Return the operation of `/explain`."""
    description = "The last decisions about a pod, per node and plugin; JSON if the Accept header has it."
    content = {**PLAIN_TEXT_CONTENT, "application/json": {"schema": {"type": "object"}}}
    parameter: Schema = {"in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "parameters": [{"name": name, **parameter} for name in ("namespace", "pod")],
        "responses": {
            "200": {"description": description, "content": content},
            "400": {"description": "The path is invalid.", "content": PLAIN_TEXT_CONTENT},
            "404": {"description": "There are no decisions about the pod.", "content": PLAIN_TEXT_CONTENT},
        },
    }


def add_verb_operations(document: Schema, paths: Mapping[str, str]) -> None:
    """Add the operations of the verbs in *paths* (path by verb name), and their schemas, to an OpenAPI *document*."""
    schemas: Schema = {}
    for verb, path in paths.items():
        document["paths"][path] = {"post": _make_operation(verb, schemas)}
    document.setdefault("components", {}).setdefault("schemas", {}).update(schemas)


def _make_operation(verb: str, schemas: Schema) -> Schema:
    """Return the operation of *verb*, and add the schemas of its types to *schemas* by name."""
    operation = _OPERATIONS[verb]
    forms, request_schemas = msgspec.json.schema_components(operation.request_types, ref_template=_REF_TEMPLATE)
    (response,), response_schemas = msgspec.json.schema_components(
        [operation.response_type], ref_template=_REF_TEMPLATE
    )
    schemas.update({name: _use_first_paragraph(schema) for name, schema in request_schemas.items()})
    schemas.update({name: _require_all_fields(schema) for name, schema in response_schemas.items()})
    request = {"description": "Keys are case-insensitive.", "oneOf": list(forms)}
    return {
        "summary": (getdoc(operation.handler) or "").partition("\n")[0],
        "operationId": verb,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": {"description": "The result.", "content": {"application/json": {"schema": response}}},
            **_ERROR_RESPONSES,
            **(_DECISION_FAILED if operation.can_fail else {}),
        },
    }


def _use_first_paragraph(schema: Schema) -> Schema:
    """Return *schema* with the first paragraph of the type's docstring as its description."""
    return {**schema, "description": schema["description"].partition("\n\n")[0]}


def _require_all_fields(schema: Schema) -> Schema:
    """Return the schema of a response, which always has all fields of its type and no others."""
    return {**_use_first_paragraph(schema), "required": list(schema["properties"]), "additionalProperties": False}
