"""Handle the subresources pods/binding and pods/eviction.

Source: pkg/registry/core/pod/storage/storage.go, BindingREST.Create; pkg/registry/core/pod/storage/eviction.go,
EvictionREST.Create, EvictionREST.checkAndDecrement (1.36).
"""

from typing import Final

from extender.api.codec import from_builtins
from extender.api.kinds.meta import LabelSelector
from extender.api.matching import selector_from_label_selector
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import (
    StatusCause,
    StatusError,
    make_success_status,
    new_bad_request,
    new_conflict,
    new_forbidden,
    new_invalid,
    new_too_many_requests,
)
from extender.fake_apiserver.registry.metadata import check_preconditions
from extender.fake_apiserver.registry.pod_strategy import TERMINAL_PHASES, set_condition
from extender.fake_apiserver.registry.resources import POD_DISRUPTION_BUDGETS, PODS, Object

_RETRY_SECONDS: Final = 10
_SEVERAL_BUDGETS_MESSAGE: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_EVICTED_CONDITION: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def bind(api: Api, namespace: str, name: str, binding: Object, *, dry_run: bool = False) -> Object:
    """Assign a pod to a node, which need not exist; return a Status.

    Raises:
        StatusError: 400, 404, 422, or 409 if the pod has a node, is gated, is being deleted, or has a uid that
            differs from the uid in the binding.
    """
    meta = binding.get("metadata") or {}
    if meta.get("name") != name:
        raise new_bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    if target.get("kind", "") not in {"", "Node"}:
        message = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise new_invalid(PODS, name, [StatusCause("target.kind", "FieldValueNotSupported", message)])
    node_name = target.get("name") or ""
    if not node_name:
        raise new_invalid(PODS, name, [StatusCause("target.name", "FieldValueRequired", "Required value")])
    pod = api.get(PODS, namespace, name)
    check_preconditions(PODS, pod, meta)
    reason = _find_bind_conflict(pod)
    if reason:
        raise new_conflict(PODS, name, reason, "binding")
    if not dry_run:
        api.guaranteed_update(PODS, namespace, name, lambda pod: _assign_node(pod, node_name, meta, api.now()))
    return {**make_success_status(), "code": 201}


def _find_bind_conflict(pod: Object) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if meta.get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assign_node(pod: Object, node_name: str, binding_meta: Object, now: str) -> Object:
    meta = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if binding_meta.get(field):
            meta[field] = {**(meta.get(field) or {}), **binding_meta[field]}
    status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
    updated_pod = {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}
    return set_condition(updated_pod, {"type": "PodScheduled", "status": "True"}, now)


def evict(api: Api, namespace: str, name: str, eviction: Object, *, dry_run: bool = False) -> Object:
    """Delete a pod if its disruption budget allows the eviction; return a Status.

    Raises:
        StatusError: 400, 404, 409, 429 if the budget currently forbids the eviction, or 500 if the pod has several
            budgets.
    """
    meta = eviction.get("metadata") or {}
    if meta.get("name") != name:
        raise new_bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    pod = api.get(PODS, namespace, name)
    check_preconditions(PODS, pod, options.get("preconditions") or {}, deleting=True)
    ignores_budgets = pod["status"].get("phase") in {*TERMINAL_PHASES, "Pending"} or pod["metadata"].get(
        "deletionTimestamp"
    )
    budgets = [] if ignores_budgets else _find_budgets(api, pod)
    if len(budgets) > 1:
        raise StatusError(500, "", _SEVERAL_BUDGETS_MESSAGE)
    if budgets:
        _check_and_decrement(api, pod, budgets[0], dry_run=dry_run)
    if not dry_run:
        api.guaranteed_update(PODS, namespace, name, lambda pod: set_condition(pod, _EVICTED_CONDITION, api.now()))
        delete_options = {key: value for key, value in options.items() if key != "preconditions"}
        api.delete(PODS, namespace, name, delete_options)
    return {**make_success_status(), "code": 201}


def _find_budgets(api: Api, pod: Object) -> list[Object]:
    labels = pod["metadata"].get("labels") or {}
    return [
        budget
        for budget in api.list_objects(POD_DISRUPTION_BUDGETS, pod["metadata"]["namespace"])
        if selector_from_label_selector(from_builtins(budget["spec"].get("selector"), LabelSelector)).matches(labels)
    ]


def _check_and_decrement(api: Api, pod: Object, budget: Object, *, dry_run: bool) -> None:
    meta, spec, status = budget["metadata"], budget["spec"], budget.get("status") or {}
    name = meta["name"]
    healthy_count, desired_count = int(status.get("currentHealthy", 0)), int(status.get("desiredHealthy", 0))
    if not _is_ready(pod) and (
        spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or healthy_count >= desired_count > 0
    ):
        return
    allowed_disruptions = int(status.get("disruptionsAllowed", 0))
    if int(status.get("observedGeneration", 0)) < int(meta.get("generation", 0)):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise new_too_many_requests(cause, _RETRY_SECONDS)
    if allowed_disruptions < 0:
        raise new_forbidden(POD_DISRUPTION_BUDGETS, name, "pdb disruptions allowed is negative")
    if allowed_disruptions == 0:
        cause = f"The disruption budget {name} does not allow evicting pods currently"
        if healthy_count <= desired_count:
            cause = f"The disruption budget {name} needs {desired_count} healthy pods and has {healthy_count} currently"
        raise new_too_many_requests(cause)
    if dry_run:
        return
    disrupted_pods = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: api.now()}
    updated_status = {**status, "disruptionsAllowed": allowed_disruptions - 1, "disruptedPods": disrupted_pods}
    api.guaranteed_update(
        POD_DISRUPTION_BUDGETS, meta["namespace"], name, lambda budget: {**budget, "status": updated_status}
    )


def _is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
