"""The interface described as OpenAPI: both forms of the request, and the answers of each verb.

Payloads are decoded by `wire`, not by what stands here; a test holds the two together.
"""

from typing import Any

Schema = dict[str, Any]

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
        "metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}
    },
    "additionalProperties": True,
}
_NODE_LIST: Schema = {
    "type": "object",
    "description": "A v1 NodeList.",
    "properties": {"metadata": {"type": "object"}, "items": {"type": "array", "items": _NODE}},
}
_NAMES: Schema = {"type": "array", "items": {"type": "string"}}
_NOTHING: Schema = {"type": "null"}
_REASONS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def _form(title: str, description: str, given: str, schema: Schema) -> Schema:
    other = "Nodes" if given == "NodeNames" else "NodeNames"
    return {
        "title": title,
        "description": description,
        "type": "object",
        "required": ["Pod", given],
        "properties": {"Pod": _POD, given: schema, other: _NOTHING},
    }


ARGS: Schema = {
    "title": "ExtenderArgs",
    "description": "Keys are matched whatever their case; lower-camel names are accepted as well.",
    "oneOf": [
        _form("ByNames", "From a scheduler with nodeCacheCapable: true. Up to 8 MiB.", "NodeNames", _NAMES),
        _form("ByNodes", "From a scheduler with nodeCacheCapable: false. Up to 256 MiB.", "Nodes", _NODE_LIST),
    ],
}

FILTER_RESULT: Schema = {
    "title": "ExtenderFilterResult",
    "description": "Nodes are answered in the form they were sent. If Error is not empty, nothing else is said.",
    "type": "object",
    "required": ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"],
    "properties": {
        "Nodes": {"anyOf": [_NODE_LIST, _NOTHING]},
        "NodeNames": {"anyOf": [_NAMES, _NOTHING]},
        "FailedNodes": {**_REASONS, "description": "Refused nodes on which evicting pods may help, with the reason."},
        "FailedAndUnresolvableNodes": {**_REASONS, "description": "Nodes refused for good, with the reason."},
        "Error": {"type": "string"},
    },
    "additionalProperties": False,
}

HOST_PRIORITIES: Schema = {
    "title": "HostPriorityList",
    "description": "Every node asked about, best first. Scores are 0 to 10, or totals in the raw mode.",
    "type": "array",
    "items": {
        "type": "object",
        "required": ["Host", "Score"],
        "properties": {"Host": {"type": "string"}, "Score": {"type": "integer", "format": "int64", "minimum": 0}},
        "additionalProperties": False,
    },
}

_COUNT: Schema = {"type": "integer", "format": "int64"}
_META_VICTIMS: Schema = {
    "type": "object",
    "description": "The pods to evict on one node; how many of them a disruption budget protects.",
    "properties": {
        "Pods": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["UID"],
                "properties": {"UID": {"type": "string", "minLength": 1}},
            },
        },
        "NumPDBViolations": _COUNT,
    },
}
_VICTIMS: Schema = {
    "type": "object",
    "description": "As above with whole pods, of which only metadata.uid is read.",
    "properties": {
        "Pods": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["metadata"],
                "properties": {
                    "metadata": {
                        "type": "object",
                        "required": ["uid"],
                        "properties": {"uid": {"type": "string", "minLength": 1}},
                    }
                },
            },
        },
        "NumPDBViolations": _COUNT,
    },
}


def _offer(title: str, description: str, given: str, schema: Schema) -> Schema:
    other = "NodeNameToVictims" if given == "NodeNameToMetaVictims" else "NodeNameToMetaVictims"
    victims = {"type": "object", "additionalProperties": schema}
    return {
        "title": title,
        "description": description,
        "type": "object",
        "required": ["Pod", given],
        "properties": {"Pod": _POD, given: victims, other: _NOTHING},
    }


PREEMPTION_ARGS: Schema = {
    "title": "ExtenderPreemptionArgs",
    "description": "Keys are matched whatever their case.",
    "oneOf": [
        _offer("ByUID", "From a scheduler with nodeCacheCapable: true.", "NodeNameToMetaVictims", _META_VICTIMS),
        _offer("ByPods", "From a scheduler with nodeCacheCapable: false.", "NodeNameToVictims", _VICTIMS),
    ],
}

PREEMPTION_RESULT: Schema = {
    "title": "ExtenderPreemptionResult",
    "description": "The nodes on which evicting these pods makes room; the others are left out.",
    "type": "object",
    "required": ["NodeNameToMetaVictims"],
    "properties": {"NodeNameToMetaVictims": {"type": "object", "additionalProperties": _META_VICTIMS}},
    "additionalProperties": False,
}

_TEXT: Schema = {"type": "string"}

BINDING_ARGS: Schema = {
    "title": "ExtenderBindingArgs",
    "description": "Keys are matched whatever their case.",
    "type": "object",
    "required": ["PodName", "PodNamespace", "PodUID", "Node"],
    "properties": {"PodName": _TEXT, "PodNamespace": _TEXT, "PodUID": _TEXT, "Node": _TEXT},
}

BINDING_RESULT: Schema = {
    "title": "ExtenderBindingResult",
    "description": "If Error is empty, the pod is on the node; else nothing has changed.",
    "type": "object",
    "required": ["Error"],
    "properties": {"Error": _TEXT},
    "additionalProperties": False,
}

_LINE: Schema = {"text/plain": {"schema": {"type": "string"}}}


def operation(asked: Schema, answer: Schema, *, can_fail: bool = False) -> dict[str, Any]:
    """What FastAPI is told about a verb that is *asked* and answers so, or with a line and a 500 if it *can fail*."""
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {"application/json": {"schema": answer}}},
        "400": {"description": "The body cannot be understood; one line says where.", "content": _LINE},
        "413": {"description": "The body is too big.", "content": _LINE},
        "415": {"description": "The body is compressed.", "content": _LINE},
    }
    if can_fail:
        responses["500"] = {"description": "Deciding failed; one line says in which plugin.", "content": _LINE}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": asked}}},
        "responses": responses,
    }


def text_operation(description: str, *, can_fail: bool = False) -> dict[str, Any]:
    """What FastAPI is told about a page of plain text; those that *can fail* do so with the status 500."""
    responses: dict[str, Any] = {"200": {"description": description, "content": _LINE}}
    if can_fail:
        responses["500"] = {"description": "A check fails; a line each.", "content": _LINE}
    return {"responses": responses}
