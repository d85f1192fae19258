"""Make the pods of workloads from files, as the controllers of a cluster would.

Pods that exist already are counted, so that a manifest of a recorded workload adds only the missing pods.

Source: pkg/controller/controller_utils.go, GetPodFromTemplate; pkg/controller/statefulset/stateful_set_utils.go,
newStatefulSetPod, getPersistentVolumeClaims; pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod (1.36).
"""

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import count, filterfalse
from typing import Final

import msgspec
from msgspec.structs import replace

from extender.analysis.input.workloads import Workload
from extender.api.codec import from_builtins
from extender.api.defaulting import set_defaults
from extender.api.kinds.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from extender.api.kinds.meta import KubernetesObject, LabelSelector, ObjectMeta, OwnerReference
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod, PodSpec
from extender.api.kinds.storage import PersistentVolumeClaim
from extender.api.kinds.volumes import PersistentVolumeClaimVolumeSource, Volume
from extender.api.kinds.workload import ReplicaSet, ReplicaSetSpec
from extender.api.matching import get_required_node_affinity
from extender.api.tolerations import find_untolerated_taint

_FINISHED_PHASES: Final = ("Succeeded", "Failed")

_DAEMON_TOLERATIONS: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect)
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
"""The tolerations that the DaemonSet controller adds to its pods.

Source: pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations (1.36).
"""

_TEMPLATE_HASH: Final = "pod-template-hash"
"""The label that the deployment controller gives the pods of its replica sets.

Source: api/apps/v1/types.go, DefaultDeploymentUniqueLabelKey (1.36).
"""

_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


_MINUTES_DIGITS: Final = 8
"""The digits of the minutes since 1970, which end the name of a cron job's job, from 1989 to 2160."""


class WorkloadPods(msgspec.Struct, frozen=True):
    """The pods that a workload needs besides those that exist.

    Attributes:
        other_objects: the objects that the controllers make with them: replica sets and claims.
    """

    pods: tuple[Pod, ...]
    other_objects: tuple[KubernetesObject, ...] = ()


def make_workload_pods(workload: Workload, objects: Iterable[KubernetesObject]) -> WorkloadPods:
    """Make the pods that *workload* has in addition to its pods in *objects*.

    Nodes, pods, replica sets, claims and storage classes are read.
    """
    template = workload.spec.template
    if template is None or workload.is_finished:
        return WorkloadPods(())
    cluster = list(objects)
    owner = OwnerReference(
        api_version="", kind=workload.kind, name=workload.metadata.name, uid=workload.metadata.uid, controller=True
    )
    if workload.kind == "DaemonSet":
        return WorkloadPods(tuple(_make_daemon_pods(workload, owner, cluster)))
    existing_pods = [obj for obj in cluster if isinstance(obj, Pod)]
    owned_count = len(list_workload_pods(workload, cluster))
    if workload.kind == "StatefulSet":
        return _make_stateful_pods(workload, owner, cluster)
    other_objects: tuple[KubernetesObject, ...] = ()
    labels = template.metadata.labels
    if workload.kind == "Deployment":
        replica_set = _make_replica_set(workload, owner)
        owner = replace(owner, kind="ReplicaSet", name=replica_set.metadata.name)
        labels = {**labels, _TEMPLATE_HASH: replica_set.metadata.labels[_TEMPLATE_HASH]}
        other_objects = (replica_set,)
    namespace = workload.metadata.namespace
    taken_names = {pod.metadata.name for pod in existing_pods if pod.metadata.namespace == namespace}
    names = iterate_new_names(f"{owner.name}-", taken_names)
    pods = tuple(
        _make_pod(workload, next(names), owner, template.spec, labels)
        for _ in range(count_replicas(workload) - owned_count)
    )
    return WorkloadPods(pods, other_objects)


def count_replicas(workload: Workload) -> int:
    """Return the number of pods that run at the same time."""
    spec = workload.spec
    if workload.kind not in {"Job", "CronJob"}:
        return 1 if spec.replicas is None else spec.replicas
    if spec.suspend:
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def is_controlled_by(pod: Pod, kind: str, namespace: str, name: str, replica_sets: Mapping[str, ReplicaSet]) -> bool:
    """Return whether a workload controls *pod*; a deployment owns replica sets, and a cron job jobs."""
    owner = pod.metadata.controller
    if owner is None or pod.metadata.namespace != namespace:
        return False
    if kind == "Deployment" and owner.kind == "ReplicaSet":
        replica_set = replica_sets.get(f"{namespace}/{owner.name}")
        controller = replica_set.metadata.controller if replica_set is not None else None
        if controller is None and (replica_set is None or _TEMPLATE_HASH in pod.metadata.labels):
            # The name of a replica set is that of its deployment and a hash.
            return owner.name.rpartition("-")[0] == name
        owner = controller
    if kind == "CronJob" and owner is not None:
        return owner.kind == "Job" and get_cron_job_name(owner.name) == name
    return owner is not None and (owner.kind, owner.name) == (kind, name)


def get_cron_job_name(job_name: str) -> str:
    """Return the name of the cron job that made a job; empty for another job.

    Source: pkg/controller/cronjob/cronjob_controllerv2.go, getJobName (1.37): the name and the time in minutes.
    """
    name, _, minutes = job_name.rpartition("-")
    return name if minutes.isdecimal() and len(minutes) >= _MINUTES_DIGITS else ""


def list_workload_pods(workload: Workload, objects: Iterable[KubernetesObject]) -> list[Pod]:
    """Return the pods in *objects* that *workload* controls and that have not finished."""
    pods: list[Pod] = []
    replica_sets: dict[str, ReplicaSet] = {}
    for obj in objects:
        if isinstance(obj, ReplicaSet):
            replica_sets[f"{obj.metadata.namespace}/{obj.metadata.name}"] = obj
        elif isinstance(obj, Pod) and obj.status.phase not in _FINISHED_PHASES:
            pods.append(obj)
    meta = workload.metadata
    return [pod for pod in pods if is_controlled_by(pod, workload.kind, meta.namespace, meta.name, replica_sets)]


def _make_pod(workload: Workload, name: str, owner: OwnerReference, spec: PodSpec, labels: Mapping[str, str]) -> Pod:
    template = workload.spec.template
    meta = ObjectMeta(
        name=name,
        namespace=workload.metadata.namespace,
        labels=dict(labels),
        annotations=template.metadata.annotations if template else {},
        owner_references=(owner,),
    )
    return set_defaults(Pod(metadata=meta, spec=spec))


def iterate_new_names(prefix: str, taken_names: Container[str], start: int = 1) -> Iterator[str]:
    """Yield the names, of the prefix and a number from *start*, that are not taken."""
    return filterfalse(taken_names.__contains__, (f"{prefix}{number}" for number in count(start)))


def _make_replica_set(workload: Workload, owner: OwnerReference) -> ReplicaSet:
    template_hash = hashlib.blake2s(msgspec.json.encode(workload.spec.template), digest_size=5).hexdigest()
    selector = from_builtins(workload.spec.selector or {}, LabelSelector)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{workload.metadata.name}-{template_hash}",
            namespace=workload.metadata.namespace,
            labels={_TEMPLATE_HASH: template_hash},
            owner_references=(owner,),
        ),
        spec=ReplicaSetSpec(selector=selector),
    )


def _make_stateful_pods(workload: Workload, owner: OwnerReference, objects: list[KubernetesObject]) -> WorkloadPods:
    """Make the pods whose names do not exist yet, and the missing claims of these pods."""
    namespace, template = workload.metadata.namespace, workload.spec.template
    existing_names = {
        obj.metadata.name for obj in objects if isinstance(obj, Pod) and obj.metadata.namespace == namespace
    }
    existing_claims = {
        obj.metadata.name
        for obj in objects
        if isinstance(obj, PersistentVolumeClaim) and obj.metadata.namespace == namespace
    }
    pods: list[Pod] = []
    claims: list[KubernetesObject] = []
    start = workload.spec.ordinals.start
    for number in range(start, start + count_replicas(workload)):
        name = f"{workload.metadata.name}-{number}"
        if name in existing_names or template is None:
            continue
        claim_names = {
            claim_template.metadata.name: f"{claim_template.metadata.name}-{name}"
            for claim_template in workload.spec.volume_claim_templates
        }
        spec = _add_claims(template.spec, claim_names)
        labels = {
            **template.metadata.labels,
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(number),
        }
        pods.append(_make_pod(workload, name, owner, spec, labels))
        claims += [
            _make_claim(claim_template, claim_names[claim_template.metadata.name], namespace)
            for claim_template in workload.spec.volume_claim_templates
            if claim_names[claim_template.metadata.name] not in existing_claims
        ]
    return WorkloadPods(tuple(pods), tuple(claims))


def _add_claims(spec: PodSpec, claim_names: Mapping[str, str]) -> PodSpec:
    """Return *spec* with a volume for each claim, in place of a volume of the same name."""
    volumes = [volume for volume in spec.volumes if volume.name not in claim_names]
    volumes += [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim_name))
        for name, claim_name in claim_names.items()
    ]
    return replace(spec, volumes=tuple(volumes))


def _make_claim(template: PersistentVolumeClaim, name: str, namespace: str) -> PersistentVolumeClaim:
    return set_defaults(replace(template, metadata=replace(template.metadata, name=name, namespace=namespace)))


def _make_daemon_pods(workload: Workload, owner: OwnerReference, objects: list[KubernetesObject]) -> Iterator[Pod]:
    """Yield a pod for each node that should run one and has none."""
    template = workload.spec.template
    if template is None:
        return
    tolerations = (*template.spec.tolerations, *_DAEMON_TOLERATIONS)
    if template.spec.host_network:
        tolerations = (*tolerations, _NETWORK_TOLERATION)
    spec = replace(template.spec, tolerations=tolerations)
    occupied_nodes = {_get_daemon_node(pod) for pod in list_workload_pods(workload, objects)}
    for node in objects:
        if isinstance(node, Node) and node.metadata.name not in occupied_nodes and _should_run_daemon(spec, node):
            name = node.metadata.name
            pinned_spec = _pin_to_node(spec, name)
            yield _make_pod(workload, f"{workload.metadata.name}-{name}", owner, pinned_spec, template.metadata.labels)


def _should_run_daemon(spec: PodSpec, node: Node) -> bool:
    if spec.node_name not in {"", node.metadata.name}:
        return False
    if not get_required_node_affinity(Pod(spec=spec)).matches(node.metadata.labels, node.metadata.name):
        return False
    return find_untolerated_taint(node.spec.taints, spec.tolerations, ("NoSchedule", "NoExecute")) is None


def _get_daemon_node(pod: Pod) -> str:
    """Return the node on which a daemon set's pod is, or else the node that the pod's affinity names."""
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    selector = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    fields = [field for term in selector.node_selector_terms for field in term.match_fields] if selector else []
    return pod.spec.node_name or next((value for field in fields for value in field.values), "")


def _pin_to_node(spec: PodSpec, node_name: str) -> PodSpec:
    """Return *spec* with a required affinity to one node, in place of its required node affinity.

    Source: pkg/controller/daemon/util/daemonset_util.go, ReplaceDaemonSetPodNodeNameNodeAffinity (1.36).
    """
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node_name,))
    affinity = spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector(
            node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),)
        ),
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))
