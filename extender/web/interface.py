"""The interface described as OpenAPI: both forms of the request, and the answers of each verb.

Payloads are decoded by `wire`, not by what stands here; a test holds the two together.
"""

from typing import Any

from extender.web.wire import MOST_VIOLATIONS

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
_NOTHING: Schema = {"type": "null"}
_REASONS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def _form(title: str, description: str, given: str, schema: Schema, absent: str = "") -> Schema:
    """A request with a pod and what is *given*; another form wins where *absent* is there as well."""
    others = {absent: _NOTHING} if absent else {}
    return {
        "title": title,
        "description": description,
        "type": "object",
        "required": ["Pod", given],
        "properties": {"Pod": _POD, given: schema, **others},
    }


def _offered(victims: Schema) -> Schema:
    return {"type": "object", "additionalProperties": victims}


ARGS: Schema = {
    "title": "ExtenderArgs",
    "description": "Keys are matched whatever their case; lower-camel names are accepted as well.",
    "oneOf": [
        _form("ByNames", "From a scheduler with nodeCacheCapable: true. Up to 8 MiB.", "NodeNames", _NAMES),
        _form(
            "ByNodes", "From a scheduler with nodeCacheCapable: false. Up to 256 MiB.", "Nodes", _NODE_LIST, "NodeNames"
        ),
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

_COUNT: Schema = {"type": ["integer", "null"], "format": "int64", "minimum": 0, "maximum": MOST_VIOLATIONS}
_META_VICTIMS: Schema = {
    "type": ["object", "null"],
    "description": "The pods to evict on one node; how many of them a disruption budget protects.",
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
    "description": "As above with whole pods, of which only metadata.uid is read.",
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
    "description": "Keys are matched whatever their case.",
    "oneOf": [
        _form(
            "ByUID",
            "From a scheduler with nodeCacheCapable: true.",
            "NodeNameToMetaVictims",
            _offered(_META_VICTIMS),
        ),
        _form(
            "ByPods",
            "From a scheduler with nodeCacheCapable: false.",
            "NodeNameToVictims",
            _offered(_VICTIMS),
            "NodeNameToMetaVictims",
        ),
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

BINDING_ARGS: Schema = {
    "title": "ExtenderBindingArgs",
    "description": "Keys are matched whatever their case.",
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

_LINE: Schema = {"text/plain": {"schema": {"type": "string"}}}
_STATUS: Schema = {"application/json": {"schema": {"type": "object", "description": "A metav1.Status that says no."}}}


def operation(asked: Schema, answer: Schema, *, can_fail: bool = False) -> dict[str, Any]:
    """What FastAPI is told about a verb that is *asked* and answers so, or with a line and a 500 if it *can fail*."""
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {"application/json": {"schema": answer}}},
        "400": {"description": "The body cannot be understood; one line says where.", "content": _LINE},
        "401": {"description": "A client certificate is required, and none was shown.", "content": _STATUS},
        "403": {"description": "The client certificate is not of one who may ask.", "content": _STATUS},
        "413": {"description": "The body is too big.", "content": _LINE},
        "415": {"description": "The body is compressed.", "content": _LINE},
        "503": {"description": "The cluster is not known yet, or too much waits to be answered.", "content": _LINE},
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
