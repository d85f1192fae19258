"""Apply the changes of a scenario to a cache, in steps of one node."""

from collections.abc import Generator, Iterator
from typing import Final

from extender.api.kinds.pod import Pod
from extender.api.tolerations import find_untolerated_taint
from extender.cache.cache import Cache
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import Departure, classify_departure
from extender.planning.node_changes import add_node_like, change_label, change_taint, choose_new_names, cordon_node
from extender.planning.pod_removals import PodRemovals
from extender.planning.scaling import calculate_pod_changes
from extender.planning.scenario import Scenario, TaintChange

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
            deleted_uids.add(pending_pod.metadata.uid or pending_pod.key)
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
