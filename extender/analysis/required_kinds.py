"""The kinds of objects on which the scheduling of a pod depends, besides nodes and pods.

Of a live cluster, only these kinds are read. A result has a warning if it depends on a kind that is not recorded.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from extender.api.coscheduling import POD_GROUP_LABEL
from extender.api.kinds.pod import Pod
from extender.api.requests import is_dra_extended_resource
from extender.cache.tables.volume_uses import find_pvc_use
from extender.client.rest_mapping import ENDPOINTS
from extender.framework.profiles import Profile

CLAIM_KINDS: Final = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")
_ATTACHMENT_KINDS: Final = ("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment")
_DEVICE_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
_SPREADING_CONTROLLERS: Final = ("ReplicationController", "ReplicaSet", "StatefulSet")
GROUP_KINDS: Final = ("PodGroup", "CompositePodGroup", "CoschedulingPodGroup")
"""The kinds of groups of pods."""

_CLAIM_PLUGINS: Final = frozenset(("VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"))
_DEVICE_PLUGINS: Final = frozenset(("DynamicResources", "NodeResourcesFit", "NodeResourcesBalancedAllocation"))
_SPREADING_PLUGINS: Final = frozenset(("PodTopologySpread", "SelectorSpread", "ServiceAffinity"))

RECORDED_KINDS: Final = (
    "Node",
    "Pod",
    "Namespace",
    "Service",
    *_SPREADING_CONTROLLERS,
    *CLAIM_KINDS,
    *_ATTACHMENT_KINDS,
    "PodDisruptionBudget",
    "PriorityClass",
    *_DEVICE_KINDS,
)
"""The kinds of a complete recording, nodes and pods first."""


def list_required_kinds(pod: Pod, profile: Profile) -> list[str]:
    """Return the kinds that the plugins of *profile* read for *pod*, without nodes and pods, each once.

    A kind is left out only if none of its objects could change the result for this pod.
    """
    return list(dict.fromkeys(_iterate_required_kinds(pod, profile)))


def _iterate_required_kinds(pod: Pod, profile: Profile) -> Iterator[str]:
    plugins = profile.plugins.keys()
    if _CLAIM_PLUGINS & plugins and pod.spec.volumes:
        yield from CLAIM_KINDS if any(map(find_pvc_use, pod.spec.volumes)) else ()
        yield from _ATTACHMENT_KINDS
    if "DynamicResources" in plugins:
        yield from _iterate_device_kinds(pod)
    if _SPREADING_PLUGINS & plugins and not pod.spec.topology_spread_constraints:
        yield from _iterate_spreading_kinds(pod)
    if "InterPodAffinity" in plugins:
        yield "Namespace"
    if "DefaultPreemption" in plugins and pod.spec.preemption_policy != "Never":
        yield "PodDisruptionBudget"
    if pod.spec.priority is None:
        yield "PriorityClass"
    yield from _iterate_pod_group_kinds(pod, profile)
    for name, plugin in profile.plugins.items():
        if name not in _DEVICE_PLUGINS or pod.spec.resource_claims or _requests_extended_resource(pod):
            for kind in getattr(plugin, "read_kinds", ()):
                yield kind.__name__


def _iterate_pod_group_kinds(pod: Pod, profile: Profile) -> Iterator[str]:
    if "GenericWorkload" not in profile.gates:
        return
    if not profile.gates.coscheduling:
        if pod.spec.scheduling_group is not None:
            yield "PodGroup"
            yield from ("CompositePodGroup",) if "CompositePodGroup" in profile.gates else ()
    elif pod.metadata.labels.get(POD_GROUP_LABEL):
        yield "CoschedulingPodGroup"


def _iterate_device_kinds(pod: Pod) -> Iterator[str]:
    if pod.spec.resource_claims:
        yield from _DEVICE_KINDS
    elif _requests_extended_resource(pod):  # a device class may provide it
        yield from ("DeviceClass", "ResourceSlice", "ResourceClaim")


def _iterate_spreading_kinds(pod: Pod) -> Iterator[str]:
    """Yield the kinds whose selectors define the default spreading of *pod*.

    Source: pkg/scheduler/framework/plugins/helper/spread.go, DefaultSelector (1.36).
    """
    if pod.metadata.labels:
        yield "Service"
    owner = pod.metadata.controller
    if owner is not None and owner.kind in _SPREADING_CONTROLLERS:
        yield owner.kind


def _requests_extended_resource(pod: Pod) -> bool:
    return any(
        is_dra_extended_resource(name)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for name in container.resources.requests
    )


def list_missing_kinds(
    pod: Pod,
    profile: Profile,
    recorded_kinds: Collection[str],
    unreadable_kinds: Collection[str] = (),
    *,
    scored: bool,
    preempts: bool,
) -> list[str]:
    """Return the kinds that are not recorded although the result for *pod* depends on them.

    Kinds are left out if clusters often have no object of them, so that their absence means nothing.

    *scored* and *preempts* say whether the result depends on scores, and on victims of a preemption.
    """
    relevant_kinds = {*CLAIM_KINDS, "ResourceClaim", "ResourceSlice", "DeviceClass", "PriorityClass", *GROUP_KINDS}
    if not pod.spec.resource_claims:
        relevant_kinds -= {"ResourceClaim", "ResourceSlice", "DeviceClass"}
    elif all(claim.resource_claim_name is None for claim in pod.spec.resource_claims):
        relevant_kinds.add("ResourceClaimTemplate")
    if "DeviceTaintRule" in unreadable_kinds:
        relevant_kinds.add("DeviceTaintRule")
    if scored:
        relevant_kinds |= {"Service", *_SPREADING_CONTROLLERS}
    if preempts:
        relevant_kinds.add("PodDisruptionBudget")
    if has_namespace_selector(pod):
        relevant_kinds.add("Namespace")
    class_name = pod.spec.priority_class_name
    if not class_name or class_name.startswith("system-"):  # few clusters have a global default
        relevant_kinds.remove("PriorityClass")
    return [kind for kind in list_required_kinds(pod, profile) if kind in relevant_kinds and kind not in recorded_kinds]


def has_namespace_selector(pod: Pod) -> bool:
    """Return whether a term of the pod's affinity or anti-affinity selects namespaces by their labels."""
    terms = pod.spec.affinity.iterate_pod_terms() if pod.spec.affinity is not None else ()
    return any(term.namespace_selector is not None for term in terms)


def get_plural(kind: str) -> str:
    """Return the plural resource name of a kind, such as `persistentvolumeclaims`."""
    endpoint = ENDPOINTS.get(kind)
    return endpoint.plural if endpoint else f"{kind.lower()}s"


def format_missing_kinds(missing_kinds: Collection[str], unreadable_kinds: Mapping[str, str]) -> list[str]:
    """Return a line for the kinds that are not recorded, and a line for each kind that could not be read.

    *unreadable_kinds* has the reason of each kind that could not be read when the cluster was recorded.
    """
    lines = [
        f"not readable: {get_plural(kind)}; {unreadable_kinds[kind]}"
        for kind in missing_kinds
        if kind in unreadable_kinds
    ]
    unrecorded_plurals = ", ".join(get_plural(kind) for kind in missing_kinds if kind not in unreadable_kinds)
    if unrecorded_plurals:
        lines.insert(0, f'not recorded: {unrecorded_plurals}; the command "record" records all kinds')
    return lines


def describe_missing_kinds(
    pods: Iterable[Pod],
    profiles: Mapping[str, Profile],
    recorded_kinds: Collection[str],
    unreadable_kinds: Mapping[str, str],
    *,
    preempts: bool,
) -> list[str]:
    """Return the lines of `format_missing_kinds` for the nodes of *pods*; *preempts* is as in `list_missing_kinds`."""
    kinds = dict[str, None]()
    for pod in pods:
        profile = profiles.get(pod.spec.scheduler_name)
        if profile is not None:
            missing = list_missing_kinds(pod, profile, recorded_kinds, unreadable_kinds, scored=True, preempts=preempts)
            kinds.update(dict.fromkeys(missing))
    return format_missing_kinds(tuple(kinds), unreadable_kinds)


def describe_missing_budgets(recorded_kinds: Collection[str], unreadable_kinds: Mapping[str, str]) -> str:
    """Return a note for an answer with evictions if the disruption budgets were not read; empty if they were."""
    if "PodDisruptionBudget" in recorded_kinds:
        return ""
    reason = unreadable_kinds.get("PodDisruptionBudget")
    cause, advice = ("not readable", reason) if reason else ("not recorded", 'the command "record" records all kinds')
    return f"{cause}: poddisruptionbudgets; evictions are answered as if there were none; {advice}"
