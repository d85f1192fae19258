"""Small clusters for preemption: nodes for a few pods, and failed attempts on them."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.post_filter import FailedAttempt
from extender.framework.profiles import Profile
from extender.framework.status import Code, Reason, Rejection
from extender.plugins.default_preemption import DefaultPreemptionArgs
from extender.preemption.candidates import CandidateSearchResult, find_candidates
from extender.preemption.plan import Candidate
from tests.build import make_node, make_object, make_pod

ALL_NODES = DefaultPreemptionArgs(100, 0)
HOST = "kubernetes.io/hostname"


def make_small_node(name: str, cpu: str = "2") -> Any:
    """Make a node with its host name as label."""
    return make_node(name, labels={HOST: name}, allocatable={"cpu": cpu, "memory": "16Gi", "pods": "110"})


def make_victim(name: str, node: str, *, cpu: str = "1", priority: int = 1, start: str = "10:00", **more: Any) -> Pod:
    """Make a pod of low priority on *node*, started at *start* o'clock; without a time it has not started."""
    status = {"startTime": f"2026-01-01T{start}:00Z"} if start else {}
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, status=status, **more)


def make_preemptor(name: str = "high", *, cpu: str = "2", priority: int = 100, **more: Any) -> Pod:
    """Make a pending pod of high priority."""
    return make_pod(name, priority=priority, requests={"cpu": cpu}, **more)


def make_budget(allowed: int, labels: Mapping[str, str] | None, *, name: str = "budget", **more: Any) -> Any:
    """Make a disruption budget in the namespace `default`; None as labels omits the selector."""
    return make_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": more.get("namespace", "default")},
            "spec": {} if labels is None else {"selector": {"matchLabels": dict(labels)}},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": more.get("disrupted", {})},
        }
    )


def make_candidate(node: str, *victims: AssignedPodInfo, violations: int = 0) -> Candidate:
    """Make a candidate with these victims."""
    return Candidate(node, victims, violations)


def make_failed_attempt(
    state: Cache,
    pod: Pod,
    profile: Profile | None = None,
    *,
    rng: Random | None = None,
    all_nodes: bool = True,
) -> tuple[Any, Snapshot, FailedAttempt]:
    """Return *pod*, the snapshot and the failed attempt."""
    profile, runtime, snapshot = profile or wiring.build_setup().first_profile, PluginRuntime(), state.snapshot()
    pod_info = snapshot.make_pod_info(pod)
    failed = find_nodes_that_pass_filters(pod_info, snapshot, profile, runtime)
    assert not failed.has_feasible_node, "the pod fits without evicting anybody"
    return pod_info, snapshot, FailedAttempt(failed, profile, runtime, rng, all_nodes)


def search_candidates(
    state: Cache, pod: Pod, enough: DefaultPreemptionArgs = ALL_NODES, **more: Any
) -> CandidateSearchResult:
    """Search candidates for *pod*."""
    pod_info, snapshot, attempt = make_failed_attempt(state, pod, **more)
    return find_candidates(pod_info, snapshot, attempt, enough.calculate_num_candidates)


def victim_names(found: CandidateSearchResult) -> dict[str, list[str]]:
    """Return the names of the victims by candidate."""
    return {each.node_name: [pod.pod.metadata.name for pod in each.victims] for each in found.candidates}


class FailingFilter:
    """Rejects every node with pods, and fails on some nodes once they are empty."""

    name = "FailsOn"

    def __init__(self, *names: str) -> None:
        self.names = names

    def filter(self, _pod: Any, nodes: Any, _notes: Any) -> Sequence[Rejection]:
        busy = nodes.pod_count > 0
        lost = np.array([name in self.names for name in nodes.names], dtype=np.bool_) & ~busy
        return (Rejection(busy, Reason("busy")), Rejection(lost, Reason("no idea", Code.ERROR)))
