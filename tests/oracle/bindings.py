"""What the PreBind plugins of extender write for a pod on a node, in the form of the oracle's answers."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from extender.api import quantity
from extender.api.kinds.devices import ResourceClaim
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import PersistentVolume
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cycle.binding_cycle import (
    run_pre_bind_plugin,
    run_pre_bind_pre_flights,
    run_reserve_plugins,
    run_unreserve_plugins,
)
from extender.cycle.decision import ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.scheduling_cycle import CycleInputs, schedule_without_extenders
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.profiles import Profile
from extender.plugins.dynamic_resources.api_calls import CLAIM_KIND, to_builtins
from extender.volumes.claims import SELECTED_NODE


def ask_bindings(pod: Pod, feasible: Sequence[str], cache: Cache, profile: Profile, runtime: PluginRuntime) -> Any:
    """Return what is written if *pod* is bound to the first or the last of the *feasible* nodes, by node."""
    snapshot = cache.snapshot()
    bindings = {}
    for node in dict.fromkeys((*feasible[:1], *feasible[-1:])):
        calls = _bind(pod, node, snapshot, profile, runtime)
        if calls is not None:
            bindings[node] = _describe(calls, snapshot)
    return bindings


def _bind(pod: Pod, node: str, snapshot: Snapshot, profile: Profile, runtime: PluginRuntime) -> list[ApiCall] | None:
    """Return the calls of PreBind, after which Unreserve runs; None if Reserve or an earlier step fails."""
    info = snapshot.make_pod_info(pod)
    only_nodes = frozenset((node,))
    inputs = CycleInputs(info, snapshot, profile, runtime, Random(0), NodeSampler(), only_nodes=only_nodes)
    decision = schedule_without_extenders(inputs)
    if not isinstance(decision, ScheduleResult):
        return None
    state = decision.cycle_state
    calls: list[ApiCall] = []
    is_reserved = run_reserve_plugins(info, node, snapshot, profile, runtime, state) is None
    if is_reserved:
        for plugins in run_pre_bind_pre_flights(info, node, profile, runtime, state).groups:
            for plugin in plugins:
                plan = run_pre_bind_plugin(plugin, info, node, snapshot, runtime, state)
                calls += plan.calls if isinstance(plan, ApiPlan) else ()
    run_unreserve_plugins(info, node, profile, runtime, state)
    return calls if is_reserved else None


def _describe(calls: Iterable[ApiCall], snapshot: Snapshot) -> dict[str, Any]:
    """Return what *calls* write, in the form of the oracle's `BindingAnswer`."""
    answer: dict[str, Any] = {"claims": {}, "requests": None, "podStatus": {}, "volumes": {}, "selectedNodes": {}}
    new_key = ""
    for call in calls:
        key, body = f"{call.namespace}/{call.name}", call.body
        if call.verb == "create":
            answer["requests"], new_key = body["spec"]["devices"].get("requests"), key
        elif call.kind == CLAIM_KIND and call.subresource == "status":
            claim = snapshot.get_object(ResourceClaim, key)
            status = to_builtins(claim.status) if claim is not None else {}
            before = status.get("reservedFor", []) if call.strategic else []
            added = [consumer for consumer in body["status"]["reservedFor"] if consumer not in before]
            if not added:  # kube-scheduler does not repeat a reservation
                continue
            status = {**status, **body["status"], "reservedFor": [*before, *added]}
            name = f"{call.namespace}/" if key == new_key else key
            answer["claims"][name] = {field: status[field] for field in ("allocation", "reservedFor")}
        elif call.kind == "Pod":
            answer["podStatus"].update(body["status"])
        elif call.kind == "PersistentVolume":
            volume = snapshot.get_object(PersistentVolume, call.name)
            assert volume is not None
            reference = body.get("spec", {}).get("claimRef") or to_builtins(volume.spec.claim_ref)
            answer["volumes"][f"{reference['namespace']}/{reference['name']}"] = volume.spec.capacity["storage"]
        elif call.kind == "PersistentVolumeClaim":
            answer["selectedNodes"][key] = body["metadata"]["annotations"][SELECTED_NODE]
    return answer


def normalize_bindings(bindings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the bindings by pod and node, without random identifiers, times and empty fields.

    kube-scheduler looks at equal volumes in any order, so only the capacity of a pod's only volume has a meaning. It
    fails with the request mappings of a pod that has none; here the API server refuses them.
    """
    return {
        f"binding {pod} {node}": _normalize(binding)
        for pod, by_node in bindings.items()
        for node, binding in by_node.items()
    }


def _normalize(binding: Mapping[str, Any]) -> dict[str, Any]:
    normalized: dict[str, Any] = _without_empty_fields(binding)
    for claim in normalized.get("claims", {}).values():
        share_ids: dict[str, int] = {}
        for result in claim.get("allocation", {}).get("devices", {}).get("results", ()):
            if "shareID" in result:
                result["shareID"] = share_ids.setdefault(result["shareID"], len(share_ids))
            for name, amount in result.get("consumedCapacity", {}).items():
                result["consumedCapacity"][name] = quantity.milli_value(amount)
    volumes = normalized.get("volumes", {})
    for claim_key, capacity in volumes.items():
        volumes[claim_key] = quantity.value(capacity) if len(volumes) == 1 else "any"
    status = normalized.get("podStatus", {})
    mappings = status.pop("extendedResourceClaimStatus", {}).get("requestMappings")
    if mappings:
        status["requestMappings"] = sorted(mappings, key=str)
    return _without_empty_fields(normalized)


def _without_empty_fields(value: Any) -> Any:
    """Return a copy of *value* without empty fields, times and the default operator of tolerations."""
    if isinstance(value, dict):
        fields = {key: _without_empty_fields(inner) for key, inner in value.items() if key != "allocationTimestamp"}
        is_default = fields.get("operator") == "Equal"
        return {
            key: inner
            for key, inner in fields.items()
            if inner not in (None, "", [], {}) and not (is_default and key == "operator")
        }
    return [_without_empty_fields(inner) for inner in value] if isinstance(value, list) else value


def uses_claims(pod: Pod) -> bool:
    """Return whether *pod* has volumes, claims, or resources that devices may serve."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    names = {name for container in containers for name in container.resources.requests}
    return bool(pod.spec.volumes or pod.spec.resource_claims or names - {"cpu", "memory"})
