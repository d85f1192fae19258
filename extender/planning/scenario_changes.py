"""Apply the changes of a scenario to a cache, in steps of one node: new and lost nodes, labels, taints, cordons."""

from collections.abc import Collection, Generator, Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from extender.analysis.explanation.suggestions import CONDITION_BY_TAINT, OWNER_BY_TAINT
from extender.analysis.input.workload_pods import iterate_new_names
from extender.api.kinds.devices import ResourceSlice
from extender.api.kinds.node import Node, Taint
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import CSINode
from extender.api.tolerations import find_untolerated_taint
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure
from extender.planning.pod_removals import PodRemovals
from extender.planning.scaling import calculate_pod_changes
from extender.planning.scenario import LabelChange, Scenario, TaintChange

_HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
_UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_STATE_TAINTS: Final = frozenset(
    (_UNSCHEDULABLE_TAINT.key, *CONDITION_BY_TAINT, *OWNER_BY_TAINT, "DeletionCandidateOfClusterAutoscaler")
)
"""The keys of taints that controllers set for the current state of a node; a new node does not have them.

A deletion candidate is only avoided (PreferNoSchedule), so it has no meaning among the taints that reject pods.

Source: api/core/v1/well_known_taints.go (1.36); kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go.
"""


def cordon_node(edits: CacheEdits, name: str) -> None:
    """Cordon a node. The node lifecycle controller adds a taint to a cordoned node."""
    node = edits.get_node(name)
    taints = node.spec.taints
    if not any(taint.key == _UNSCHEDULABLE_TAINT.key for taint in taints):
        taints = (*taints, _UNSCHEDULABLE_TAINT)
    edits.replace_node(replace(node, spec=replace(node.spec, unschedulable=True, taints=taints)))


def uncordon_node(edits: CacheEdits, name: str) -> None:
    """End the cordon of a node. The node lifecycle controller removes the taint."""
    node = edits.get_node(name)
    taints = tuple(taint for taint in node.spec.taints if taint.key != _UNSCHEDULABLE_TAINT.key)
    edits.replace_node(replace(node, spec=replace(node.spec, unschedulable=False, taints=taints)))


def change_label(edits: CacheEdits, change: LabelChange) -> None:
    """Set or remove a label of a node."""
    node = edits.get_node(change.node)
    labels = {key: value for key, value in node.metadata.labels.items() if key != change.key}
    if change.value is not None:
        labels[change.key] = change.value
    edits.replace_node(replace(node, metadata=replace(node.metadata, labels=labels)))


def change_taint(edits: CacheEdits, change: TaintChange) -> None:
    """Add a taint to a node, or remove it. A taint with equal key and effect is replaced."""
    node = edits.get_node(change.node)
    effects = ("", change.taint.effect)
    taints = tuple(
        taint
        for taint in node.spec.taints
        if taint.key != change.taint.key or (change.taint.effect and taint.effect not in effects)
    )
    if not change.remove:
        taints = (*taints, change.taint)
    edits.replace_node(replace(node, spec=replace(node.spec, taints=taints)))


def choose_new_names(like: str, count: int, taken: Collection[str]) -> list[str]:
    """Return *count* names for new nodes: `<like>-new-1` and so on, without names that are taken."""
    return list(islice(iterate_new_names(f"{like}-new-", taken), count))


def add_node_like(edits: CacheEdits, cache: Cache, like: Node, name: str) -> Node:
    """Add a node that equals *like*, and return it. Copy the DaemonSet pods and mirror pods of *like* to it.

    The new node is schedulable, and has no taints about the state of *like*. CSI limits and devices are copied too.
    """
    old_name = like.metadata.name
    labels = {key: name if key == _HOSTNAME_LABEL else value for key, value in like.metadata.labels.items()}
    node = replace(
        like,
        metadata=replace(like.metadata, name=name, uid=f"node/{name}", labels=labels),
        spec=replace(
            like.spec,
            unschedulable=False,
            provider_id="",
            taints=tuple(taint for taint in like.spec.taints if taint.key not in _STATE_TAINTS),
        ),
    )
    edits.add_node(node)
    csi_node = cache.get_object(CSINode, old_name)
    if csi_node is not None:
        edits.put_object(replace(csi_node, metadata=replace(csi_node.metadata, name=name, uid=f"csinode/{name}")))
    with cache.read() as snapshot:
        slices, pods = list(snapshot.objects(ResourceSlice).values()), list(snapshot.pods_on(old_name).values())
    for device_slice in slices:
        if device_slice.spec.node_name == old_name:
            edits.put_object(_copy_slice(device_slice, name))
    for pod in pods:
        if classify_departure(pod.pod) is Departure.DAEMON_OR_MIRROR and not pod.terminating:
            bound = pod.pod_with_node_name
            meta = replace(bound.metadata, name=f"{bound.metadata.name}-{name}", uid=f"{pod.uid}/{name}")
            edits.add_pod(replace(bound, metadata=meta, spec=replace(bound.spec, node_name=name)))
    return node


def _copy_slice(device_slice: ResourceSlice, node_name: str) -> ResourceSlice:
    """Return a slice with equal devices in a pool of the new node."""
    meta, spec = device_slice.metadata, device_slice.spec
    return replace(
        device_slice,
        metadata=replace(meta, name=f"{meta.name}-{node_name}", uid=f"slice/{meta.name}/{node_name}"),
        spec=replace(spec, node_name=node_name, pool=replace(spec.pool, name=f"{spec.pool.name}-{node_name}")),
    )


_NO_EXECUTE: Final = ("NoExecute",)


def apply_scenario(
    scenario: Scenario, cache: Cache, edits: CacheEdits, removals: PodRemovals
) -> Generator[None, None, tuple[list[Pod], frozenset[str]]]:
    """Apply a scenario that matches the cluster. Pods of drained nodes are not evicted yet.

    The generator yields after each node, so that a caller in an event loop can let other tasks run.

    The cache is modified only through *edits*; *removals* removes pods from nodes and makes their replacements.

    Returns:
        The pods that the scenario creates, and the uids of the pending pods that it deletes.

    Raises:
        ScenarioError: a workload to scale has no pod.
    """
    yield from _add_nodes(scenario, cache, edits)
    with cache.read() as snapshot:
        lost_nodes = scenario.find_lost_nodes(snapshot)
    for name in lost_nodes:
        removals.clear_node(name)
        edits.remove_node(name)
        yield
    for label_change in scenario.labels:
        change_label(edits, label_change)
    for taint_change in scenario.taints:
        change_taint(edits, taint_change)
        _evict_intolerant_pods(taint_change, removals)
        yield
    for name in scenario.cordon:
        cordon_node(edits, name)
        yield
    for name in scenario.drain:
        cordon_node(edits, name)
        yield
    created_pods, deleted_uids = yield from _scale_workloads(scenario, cache, edits, removals)
    for name in scenario.drain:
        removals.drain_node(name)
    return [*created_pods, *scenario.pods], deleted_uids


def _scale_workloads(
    scenario: Scenario, cache: Cache, edits: CacheEdits, removals: PodRemovals
) -> Generator[None, None, tuple[list[Pod], frozenset[str]]]:
    """Remove surplus pods; return the pods that are created, and the uids of the pending pods that are deleted."""
    created_pods: list[Pod] = []
    deleted_uids: set[str] = set()
    for scale in scenario.scale:
        changes = calculate_pod_changes(scale, cache)
        created_pods += changes.added
        for pod in changes.surplus:
            removals.remove_surplus(pod)
            yield
        for pending_pod in changes.surplus_pending:
            removals.scaled_down.append(pending_pod.key)
            edits.remove_pending_pod(pending_pod)
            deleted_uids.add(pending_pod.uid_or_key)
    return created_pods, frozenset(deleted_uids)


def _add_nodes(scenario: Scenario, cache: Cache, edits: CacheEdits) -> Iterator[None]:
    for addition in scenario.add:
        template_node = edits.get_node(addition.like)
        names = set(cache.names) | {node.metadata.name for node in scenario.nodes}
        for name in choose_new_names(addition.like, addition.count, names):
            add_node_like(edits, cache, template_node, name)
            yield
    for node in scenario.nodes:
        edits.add_node(node)
        yield


def _evict_intolerant_pods(change: TaintChange, removals: PodRemovals) -> None:
    """Remove the pods that do not tolerate a new taint with the effect NoExecute.

    Source: pkg/controller/tainteviction/taint_eviction.go, Controller.processPodOnNode (1.36).
    """
    if change.remove or change.taint.effect not in _NO_EXECUTE:
        return
    for pod in removals.list_pods_on(change.node):
        if find_untolerated_taint([change.taint], pod.signature.tolerations, _NO_EXECUTE) is None:
            continue
        if classify_departure(pod.pod) is not Departure.DAEMON_OR_MIRROR:
            removals.remove_despite_budgets(pod)
