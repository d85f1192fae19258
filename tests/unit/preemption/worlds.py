"""Small clusters for preemption: nodes with room for a few pods, and attempts that failed on them."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from extender import wiring
from extender.cluster.pods import PlacedPod
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.decide.engine import Engine
from extender.decide.feasible import feasible
from extender.decide.rescue import Attempt
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Reason, Rejection
from extender.objects.pod import Pod
from extender.preemption.candidates import Enough, Found, search
from extender.preemption.plan import Candidate
from tests.build import a_node, a_pod, an_object

ALL = Enough(100, 0)
HOST = "kubernetes.io/hostname"


def a_small_node(name: str, cpu: str = "2") -> Any:
    """A node with its host name as label."""
    return a_node(name, labels={HOST: name}, allocatable={"cpu": cpu, "memory": "16Gi", "pods": "110"})


def low(name: str, node: str, *, cpu: str = "1", priority: int = 1, start: str = "10:00", **more: Any) -> Pod:
    """A pod on *node*, started at *start* o'clock of some day; without a time it has not started."""
    status = {"startTime": f"2026-01-01T{start}:00Z"} if start else {}
    return a_pod(name, node=node, priority=priority, requests={"cpu": cpu}, status=status, **more)


def high(name: str = "high", *, cpu: str = "2", priority: int = 100, **more: Any) -> Pod:
    """A pod that wants room."""
    return a_pod(name, priority=priority, requests={"cpu": cpu}, **more)


def a_budget(allowed: int, labels: Mapping[str, str] | None, *, name: str = "budget", **more: Any) -> Any:
    """A disruption budget of the namespace `default`; None as labels leaves the selector out."""
    return an_object(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": more.get("namespace", "default")},
            "spec": {} if labels is None else {"selector": {"matchLabels": dict(labels)}},
            "status": {"disruptionsAllowed": allowed, "disruptedPods": more.get("disrupted", {})},
        }
    )


def a_candidate(node: str, *victims: PlacedPod, violations: int = 0) -> Candidate:
    """A candidate with these victims."""
    return Candidate(node, victims, violations)


def attempted(
    state: ClusterState,
    pod: Pod,
    profile: Profile | None = None,
    *,
    chance: Random | None = None,
    every_node: bool = True,
) -> tuple[Any, Snapshot, Attempt]:
    """*pod* as it asks, the cluster, and how it failed there."""
    profile, engine, cluster = profile or wiring.scheduling().first, Engine(), state.snapshot()
    query = cluster.query(pod)
    failed = feasible(query, cluster, profile, engine)
    assert not failed.any, "the pod fits without evicting anybody"
    return query, cluster, Attempt(failed, profile, engine, chance, every_node)


def searched(state: ClusterState, pod: Pod, enough: Enough = ALL, **more: Any) -> Found:
    """What a search for room for *pod* comes to."""
    query, cluster, attempt = attempted(state, pod, **more)
    return search(query, cluster, attempt, enough)


def victims(found: Found) -> dict[str, list[str]]:
    """The names of the victims by candidate."""
    return {each.node: [pod.pod.metadata.name for pod in each.victims] for each in found.candidates}


class FailsOn:
    """Refuses every node with pods, and cannot answer for some nodes once they are empty."""

    name = "FailsOn"

    def __init__(self, *names: str) -> None:
        self.names = names

    def filter(self, _pod: Any, nodes: Any, _notes: Any) -> Sequence[Rejection]:
        busy = nodes.pod_count > 0
        lost = np.array([name in self.names for name in nodes.names], dtype=np.bool_) & ~busy
        return (Rejection(busy, Reason("busy")), Rejection(lost, Reason("no idea", Code.ERROR)))
