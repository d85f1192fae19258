"""OpenAPI schemas of each verb's requests and responses.

Payloads are decoded by `payloads`, not by these schemas; a test compares the two.
"""

from typing import Any

from extender.extender_api.payloads import MAX_PDB_VIOLATIONS
from extender.serving.health_endpoints import PLAIN_TEXT_CONTENT

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_NAME: Schema = {"type": "string", "minLength": 1}
_POD: Schema = {
    "type": "object",
    "description": "A v1 Pod in the JSON of the Kubernetes API. Unknown fields are ignored.",
    "additionalProperties": True,
}
_NODE: Schema = {
    "type": "object",
    "description": "A v1 Node in the JSON of the Kubernetes API. Unknown fields are ignored.",
    "required": ["metadata"],
    "properties": {
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": _NAME}},
    },
    "additionalProperties": True,
}
_NODE_LIST: Schema = {
    "type": "object",
    "description": "A v1 NodeList.",
    "properties": {"metadata": {"type": ["object", "null"]}, "items": {"type": ["array", "null"], "items": _NODE}},
}
_NAMES: Schema = {"type": "array", "items": _NAME}
_NULL: Schema = {"type": "null"}
_REASONS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def _make_request_schema(title: str, description: str, node_field: str, schema: Schema, null_field: str = "") -> Schema:
    """Return the schema of a request with a pod and *node_field*; *null_field* takes precedence, so it must be null."""
    null_fields = {null_field: _NULL} if null_field else {}
    return {
        "title": title,
        "description": description,
        "type": "object",
        "required": ["Pod", node_field],
        "properties": {"Pod": _POD, node_field: schema, **null_fields},
    }


def _make_node_map_schema(victims: Schema) -> Schema:
    return {"type": "object", "additionalProperties": victims}


ARGS: Schema = {
    "title": "ExtenderArgs",
    "description": "Keys are case-insensitive.",
    "oneOf": [
        _make_request_schema(
            "ByNames", "From a scheduler with nodeCacheCapable: true. Up to 8 MiB.", "NodeNames", _NAMES
        ),
        _make_request_schema(
            "ByNodes", "From a scheduler with nodeCacheCapable: false. Up to 256 MiB.", "Nodes", _NODE_LIST, "NodeNames"
        ),
    ],
}

FILTER_RESULT: Schema = {
    "title": "ExtenderFilterResult",
    "description": "Nodes are returned in the form of the request. If Error is not empty, the other fields are empty.",
    "type": "object",
    "required": ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"],
    "properties": {
        "Nodes": {"anyOf": [_NODE_LIST, _NULL]},
        "NodeNames": {"anyOf": [_NAMES, _NULL]},
        "FailedNodes": {**_REASONS, "description": "Rejected nodes on which preemption may help, with the reason."},
        "FailedAndUnresolvableNodes": {
            **_REASONS,
            "description": "Rejected nodes on which preemption cannot help, with the reason.",
        },
        "Error": {"type": "string"},
    },
    "additionalProperties": False,
}

HOST_PRIORITIES: Schema = {
    "title": "HostPriorityList",
    "description": "Every requested node, best first. Scores are 0 to 10, or totals in the raw mode.",
    "type": "array",
    "items": {
        "type": "object",
        "required": ["Host", "Score"],
        "properties": {"Host": {"type": "string"}, "Score": {"type": "integer", "format": "int64", "minimum": 0}},
        "additionalProperties": False,
    },
}

_COUNT: Schema = {"type": ["integer", "null"], "format": "int64", "minimum": 0, "maximum": MAX_PDB_VIOLATIONS}
_META_VICTIMS: Schema = {
    "type": ["object", "null"],
    "description": "The pods to evict on one node, and the number of them that a disruption budget protects.",
    "properties": {
        "Pods": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["UID"],
                "properties": {"UID": _NAME},
            },
        },
        "NumPDBViolations": _COUNT,
    },
}
_VICTIMS: Schema = {
    "type": ["object", "null"],
    "description": "The pods to evict on one node as whole pods, of which only metadata.uid is read.",
    "properties": {
        "Pods": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["metadata"],
                "properties": {
                    "metadata": {
                        "type": "object",
                        "required": ["uid"],
                        "properties": {"uid": _NAME},
                    }
                },
            },
        },
        "NumPDBViolations": _COUNT,
    },
}


PREEMPTION_ARGS: Schema = {
    "title": "ExtenderPreemptionArgs",
    "description": "Keys are case-insensitive.",
    "oneOf": [
        _make_request_schema(
            "ByUID",
            "From a scheduler with nodeCacheCapable: true.",
            "NodeNameToMetaVictims",
            _make_node_map_schema(_META_VICTIMS),
        ),
        _make_request_schema(
            "ByPods",
            "From a scheduler with nodeCacheCapable: false.",
            "NodeNameToVictims",
            _make_node_map_schema(_VICTIMS),
            "NodeNameToMetaVictims",
        ),
    ],
}

PREEMPTION_RESULT: Schema = {
    "title": "ExtenderPreemptionResult",
    "description": "The candidate nodes on which preemption helps, with their victims; other nodes are left out.",
    "type": "object",
    "required": ["NodeNameToMetaVictims"],
    "properties": {"NodeNameToMetaVictims": {"type": "object", "additionalProperties": _META_VICTIMS}},
    "additionalProperties": False,
}

BINDING_ARGS: Schema = {
    "title": "ExtenderBindingArgs",
    "description": "Keys are case-insensitive.",
    "type": "object",
    "required": ["PodName", "PodNamespace", "PodUID", "Node"],
    "properties": {"PodName": _NAME, "PodNamespace": _NAME, "PodUID": _NAME, "Node": _NAME},
}

BINDING_RESULT: Schema = {
    "title": "ExtenderBindingResult",
    "description": "If Error is empty, the pod is on the node; else nothing has changed.",
    "type": "object",
    "required": ["Error"],
    "properties": {"Error": _TEXT},
    "additionalProperties": False,
}

_STATUS: Schema = {"application/json": {"schema": {"type": "object", "description": "A metav1.Status of the failure."}}}


def make_operation(request: Schema, response: Schema, *, can_fail: bool = False) -> dict[str, Any]:
    """Return a verb's OpenAPI operation from the schemas of its request and response; *can_fail* adds status 500."""
    responses: dict[str, Any] = {
        "200": {"description": "The result.", "content": {"application/json": {"schema": response}}},
        "400": {"description": "The body is invalid; the message names the field.", "content": PLAIN_TEXT_CONTENT},
        "401": {"description": "A client certificate is required.", "content": _STATUS},
        "403": {"description": "The client certificate is not allowed.", "content": _STATUS},
        "413": {"description": "The body is too big.", "content": PLAIN_TEXT_CONTENT},
        "415": {"description": "The body is compressed.", "content": PLAIN_TEXT_CONTENT},
        "503": {
            "description": "The cache is not synced yet, or too many requests are waiting.",
            "content": PLAIN_TEXT_CONTENT,
        },
    }
    if can_fail:
        responses["500"] = {
            "description": "The decision failed; the message names the plugin.",
            "content": PLAIN_TEXT_CONTENT,
        }
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": responses,
    }
