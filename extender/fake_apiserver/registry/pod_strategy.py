"""Prepare new pods, validate updates of pods, and choose their grace periods.

Source: pkg/registry/core/pod/strategy.go, podStrategy.PrepareForCreate; pkg/apis/core/validation/validation.go,
ValidatePodUpdate (1.36).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.fake_apiserver.registry.api_errors import StatusCause, new_invalid
from extender.fake_apiserver.registry.pod_defaults import admit, get_pod_qos, set_defaults
from extender.fake_apiserver.registry.resources import PODS, Object

_MUTABLE_FIELDS: Final = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates")
_MUTABLE_FIELDS_WHILE_GATED: Final = ("nodeSelector", "affinity")
_IMMUTABLE_MESSAGE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
TERMINAL_PHASES: Final = ("Succeeded", "Failed")
"""Phases of finished pods."""


def prepare_for_create(pod: Object, priority_classes: Mapping[str, Object]) -> Object:
    """Return a new pod after admission, with defaults and its initial status.

    *priority_classes* maps the name of each priority class to the class.

    Raises:
        StatusError: 403 if admission rejects the pod, or 422 if the pod is invalid.
    """
    name = pod["metadata"]["name"]
    spec = admit(set_defaults(pod.get("spec") or {}), name, priority_classes)
    causes = _validate(spec)
    if causes:
        raise new_invalid(PODS, name, causes)
    status: Object = {"phase": "Pending", "qosClass": get_pod_qos(spec)}
    if spec.get("schedulingGates"):
        condition: Object = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        status["conditions"] = [{**condition, "message": "Scheduling is blocked due to non-empty scheduling gates"}]
    return {**pod, "spec": spec, "status": status}


def _validate(spec: Object) -> list[StatusCause]:
    causes = []
    if not spec.get("containers"):
        causes.append(StatusCause("spec.containers", "FieldValueRequired", "Required value"))
    for index, container in enumerate(spec.get("containers") or []):
        missing_fields = (field for field in ("name", "image") if not container.get(field))
        causes += [
            StatusCause(f"spec.containers[{index}].{field}", "FieldValueRequired", "Required value")
            for field in missing_fields
        ]
    if spec.get("nodeName") and spec.get("schedulingGates"):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        causes.append(StatusCause("spec.nodeName", "FieldValueForbidden", message))
    return causes


def validate_update(old: Object, new: Object) -> None:
    """Reject changes of immutable fields of the spec.

    Raises:
        StatusError: 422.
    """
    old_spec, new_spec = old["spec"], new.get("spec") or {}
    causes = []
    old_gate_names = {gate["name"] for gate in old_spec.get("schedulingGates") or ()}
    for index, gate in enumerate(new_spec.get("schedulingGates") or ()):
        if gate["name"] not in old_gate_names:
            message = f"Forbidden: only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            causes.append(StatusCause(f"spec.schedulingGates[{index}].name", "FieldValueForbidden", message))
    new_tolerations = [_remove_seconds(toleration) for toleration in new_spec.get("tolerations") or ()]
    if any(_remove_seconds(toleration) not in new_tolerations for toleration in old_spec.get("tolerations") or ()):
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        causes.append(StatusCause("spec.tolerations", "FieldValueForbidden", message))
    mutable_fields = (*_MUTABLE_FIELDS, *_MUTABLE_FIELDS_WHILE_GATED) if old_gate_names else _MUTABLE_FIELDS
    if _select_immutable_fields(old_spec, mutable_fields) != _select_immutable_fields(new_spec, mutable_fields):
        causes.append(StatusCause("spec", "FieldValueForbidden", f"Forbidden: {_IMMUTABLE_MESSAGE}"))
    if causes:
        raise new_invalid(PODS, new["metadata"]["name"], causes)


def _remove_seconds(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _select_immutable_fields(spec: Object, mutable_fields: Sequence[str]) -> Object:
    immutable_fields = {
        name: value for name, value in spec.items() if name not in mutable_fields and value not in (None, [], {})
    }
    for field in ("containers", "initContainers"):
        if field in immutable_fields:
            immutable_fields[field] = [{**container, "image": ""} for container in immutable_fields[field]]
    return immutable_fields


def get_grace_period(pod: Object, requested_seconds: int | None) -> int:
    """Return the grace period of a pod's deletion in seconds.

    It is 0 for a pod without a node and for a finished pod. For any other pod it is *requested_seconds*, or else the
    grace period in the pod's spec. A negative grace period counts as 1.

    Source: pkg/registry/core/pod/strategy.go, podStrategy.CheckGracefulDelete (1.36).
    """
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
        return 0
    seconds = (
        requested_seconds if requested_seconds is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    )
    return seconds if seconds >= 0 else 1


def set_condition(pod: Object, condition: Object, now: str) -> Object:
    """Return the pod with a new or updated condition.

    The transition time is *now* if the status of the condition changes, else it stays as it was.
    """
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or [])
    index = next(
        (index for index, old_condition in enumerate(conditions) if old_condition["type"] == condition["type"]), None
    )
    if index is None:
        conditions.append({"lastProbeTime": None, "lastTransitionTime": now, **condition})
    else:
        same_status = conditions[index].get("status") == condition["status"]
        transition_time = conditions[index].get("lastTransitionTime") if same_status else now
        conditions[index] = {"lastProbeTime": None, "lastTransitionTime": transition_time, **condition}
    return {**pod, "status": {**status, "conditions": conditions}}
