"""How pods are created, what of them may be changed, and how long they take to go.

Source: pkg/registry/core/pod/strategy.go, pkg/apis/core/validation.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.sandbox.pod_defaults import admitted, quality, with_defaults
from extender.sandbox.refusals import Wrong, invalid
from extender.sandbox.served import PODS, Object

_CHANGEABLE: Final = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates")
_WHILE_GATED: Final = ("nodeSelector", "affinity")
_IMMUTABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
FINISHED: Final = ("Succeeded", "Failed")
"""Phases of pods that are over."""


def created(pod: Object, classes: Mapping[str, Object]) -> Object:
    """A pod as it is stored when it is created.

    Raises:
        RefusedError: 403 from admission, or 422.
    """
    name = pod["metadata"]["name"]
    spec = admitted(with_defaults(pod.get("spec") or {}), name, classes)
    wrong = _faults(spec)
    if wrong:
        raise invalid(PODS, name, wrong)
    status: Object = {"phase": "Pending", "qosClass": quality(spec)}
    if spec.get("schedulingGates"):
        gated: Object = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        status["conditions"] = [{**gated, "message": "Scheduling is blocked due to non-empty scheduling gates"}]
    return {**pod, "spec": spec, "status": status}


def _faults(spec: Object) -> list[Wrong]:
    wrong = []
    if not spec.get("containers"):
        wrong.append(Wrong("spec.containers", "FieldValueRequired", "Required value"))
    for at, container in enumerate(spec.get("containers") or []):
        missing = (field for field in ("name", "image") if not container.get(field))
        wrong += [Wrong(f"spec.containers[{at}].{field}", "FieldValueRequired", "Required value") for field in missing]
    if spec.get("nodeName") and spec.get("schedulingGates"):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        wrong.append(Wrong("spec.nodeName", "FieldValueForbidden", message))
    return wrong


def check_update(old: Object, new: Object) -> None:
    """Refuse what may not be changed in the spec of a pod.

    Raises:
        RefusedError: 422.
    """
    before, after = old["spec"], new.get("spec") or {}
    wrong = []
    gates = {gate["name"] for gate in before.get("schedulingGates") or ()}
    for at, gate in enumerate(after.get("schedulingGates") or ()):
        if gate["name"] not in gates:
            message = f"Forbidden: only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            wrong.append(Wrong(f"spec.schedulingGates[{at}].name", "FieldValueForbidden", message))
    kept = [_lasting(each) for each in after.get("tolerations") or ()]
    if any(_lasting(each) not in kept for each in before.get("tolerations") or ()):
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        wrong.append(Wrong("spec.tolerations", "FieldValueForbidden", message))
    free = (*_CHANGEABLE, *_WHILE_GATED) if gates else _CHANGEABLE
    if _fixed(before, free) != _fixed(after, free):
        wrong.append(Wrong("spec", "FieldValueForbidden", f"Forbidden: {_IMMUTABLE}"))
    if wrong:
        raise invalid(PODS, new["metadata"]["name"], wrong)


def _lasting(toleration: Object) -> Object:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _fixed(spec: Object, free: Sequence[str]) -> Object:
    fixed = {name: value for name, value in spec.items() if name not in free and value not in (None, [], {})}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [{**each, "image": ""} for each in fixed[field]]
    return fixed


def grace(pod: Object, asked: int | None) -> int:
    """Seconds a pod has to end: as asked for, else its own; none where nothing runs. Source: CheckGracefulDelete."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in FINISHED:
        return 0
    seconds = asked if asked is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    return seconds if seconds >= 0 else 1


def with_condition(pod: Object, condition: Object, now: str) -> Object:
    """The pod with a condition set; the time of transition changes with its status only."""
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or [])
    at = next((at for at, each in enumerate(conditions) if each["type"] == condition["type"]), None)
    if at is None:
        conditions.append({"lastProbeTime": None, "lastTransitionTime": now, **condition})
    else:
        same = conditions[at].get("status") == condition["status"]
        time = conditions[at].get("lastTransitionTime") if same else now
        conditions[at] = {"lastProbeTime": None, "lastTransitionTime": time, **condition}
    return {**pod, "status": {**status, "conditions": conditions}}
