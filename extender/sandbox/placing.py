"""pods/binding and pods/eviction: how a pod gets its node, and how it is asked to leave.

Source: pkg/registry/core/pod/storage/storage.go and eviction.go.
"""

from typing import Final

from extender.objects.codec import from_builtins
from extender.objects.matching import from_label_selector
from extender.objects.meta import LabelSelector
from extender.sandbox.api import Api
from extender.sandbox.metadata import check_preconditions
from extender.sandbox.pod_rules import FINISHED, with_condition
from extender.sandbox.refusals import (
    RefusedError,
    Wrong,
    bad_request,
    conflict,
    forbidden,
    invalid,
    success,
    too_many,
)
from extender.sandbox.served import BUDGETS, PODS, Object

_OVER_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_SECONDS: Final = 10
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def bind(api: Api, namespace: str, name: str, binding: Object, *, dry_run: bool = False) -> Object:
    """Give a pod its node: a Status that tells of success.

    Whether the node exists is not asked.

    Raises:
        RefusedError: 400, 404, 422; 409 when the pod has a node, is gated, is being deleted, or is another pod than the
            binding means.
    """
    meta = binding.get("metadata") or {}
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    if target.get("kind", "") not in {"", "Node"}:
        message = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise invalid(PODS, name, [Wrong("target.kind", "FieldValueNotSupported", message)])
    node = target.get("name") or ""
    if not node:
        raise invalid(PODS, name, [Wrong("target.name", "FieldValueRequired", "Required value")])
    pod = api.get(PODS, namespace, name)
    check_preconditions(PODS, pod, meta)
    why = _not_to_bind(pod)
    if why:
        raise conflict(PODS, name, why, "binding")
    if not dry_run:
        api.change(PODS, namespace, name, lambda pod: _bound(pod, node, meta, api.now()))
    return {**success(), "code": 201}


def _not_to_bind(pod: Object) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if meta.get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _bound(pod: Object, node: str, given: Object, now: str) -> Object:
    meta = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if given.get(field):
            meta[field] = {**(meta.get(field) or {}), **given[field]}
    status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
    placed = {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": status}
    return with_condition(placed, {"type": "PodScheduled", "status": "True"}, now)


def evict(api: Api, namespace: str, name: str, eviction: Object, *, dry_run: bool = False) -> Object:
    """Delete a pod if its disruption budget allows: a Status that tells of success.

    Raises:
        RefusedError: 400, 404, 409; 429 when the budget forbids it now, 500 with several budgets.
    """
    meta = eviction.get("metadata") or {}
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    pod = api.get(PODS, namespace, name)
    check_preconditions(PODS, pod, options.get("preconditions") or {}, deleting=True)
    free = pod["status"].get("phase") in {*FINISHED, "Pending"} or pod["metadata"].get("deletionTimestamp")
    budgets = [] if free else _budgets_of(api, pod)
    if len(budgets) > 1:
        raise RefusedError(500, "", _SEVERAL)
    if budgets:
        _spend(api, pod, budgets[0], dry_run=dry_run)
    if not dry_run:
        api.change(PODS, namespace, name, lambda pod: with_condition(pod, _EVICTED, api.now()))
        wanted = {key: value for key, value in options.items() if key != "preconditions"}
        api.delete(PODS, namespace, name, wanted)
    return {**success(), "code": 201}


def _budgets_of(api: Api, pod: Object) -> list[Object]:
    labels = pod["metadata"].get("labels") or {}
    return [
        budget
        for budget in api.each(BUDGETS, pod["metadata"]["namespace"])
        if from_label_selector(from_builtins(budget["spec"].get("selector"), LabelSelector)).matches(labels)
    ]


def _spend(api: Api, pod: Object, budget: Object, *, dry_run: bool) -> None:
    meta, spec, status = budget["metadata"], budget["spec"], budget.get("status") or {}
    name = meta["name"]
    healthy, desired = int(status.get("currentHealthy", 0)), int(status.get("desiredHealthy", 0))
    if not _ready(pod) and (spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy >= desired > 0):
        return
    allowed = int(status.get("disruptionsAllowed", 0))
    if int(status.get("observedGeneration", 0)) < int(meta.get("generation", 0)):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise too_many(_OVER_BUDGET, cause, _RETRY_SECONDS)
    if allowed < 0:
        raise forbidden(BUDGETS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        cause = f"The disruption budget {name} does not allow evicting pods currently"
        if healthy <= desired:
            cause = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        raise too_many(_OVER_BUDGET, cause)
    if dry_run:
        return
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: api.now()}
    spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    api.change(BUDGETS, meta["namespace"], name, lambda budget: {**budget, "status": spent})


def _ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
