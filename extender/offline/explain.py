"""The pods asked about, each examined alone on the cluster as it was recorded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.engine import Engine
from extender.decide.examine import Examination, examine
from extender.framework.profiles import Profile
from extender.objects.pod import Pod
from extender.offline.answers import answer
from extender.offline.capture import Capture, load_state
from extender.offline.explanation import explanation
from extender.offline.memberships import Membership, Memberships
from extender.offline.waiting import named, nominate_waiting, waiting


@dataclass(frozen=True, slots=True)
class Explained:
    """One pod's examination, the cluster it is about, and what becomes of the pod as a member of its pod group."""

    examination: Examination
    cluster: Snapshot
    membership: Membership | None = None

    def values(self) -> dict[str, Any]:
        """As plain values, always with the same keys."""
        return {**answer(self.examination), "podGroup": self.membership.values() if self.membership else None}

    def text(self) -> str:
        """For people."""
        lines = self.membership.lines() if self.membership else []
        return explanation(self.examination, self.cluster) + "".join(f"{line}\n" for line in lines)


def explained(pod: Pod, state: ClusterState, profile: Profile, engine: Engine, groups: Memberships) -> Explained:
    """*pod*, which waits, alone on the cluster as it is, and what becomes of it as one of *groups*."""
    cluster = state.snapshot()
    examination = examine(cluster.query(pod), cluster, profile, engine)
    together = groups.of(pod) if examination.held_back is None else None
    return Explained(examination, cluster, together)


def explain(
    capture: Capture,
    names: Sequence[str],
    profiles: Mapping[str, Profile],
    schedulers: Collection[str],
    engine: Engine,
    gates: FeatureGates | None = None,
) -> list[Explained]:
    """Examines the pods of these names, each by the profile of its scheduler; without names all that wait.

    Pods with a nominated node that wait for one of these schedulers count there. Nothing is assumed, bound or evicted.
    Where the gates have pod groups scheduled as such, what becomes of a member is said beside that.

    Args:
        capture: the recorded cluster.
        names: as for `waiting.named`.
        profiles: by scheduler name.
        schedulers: those whose pods are meant where no pod is named.
        engine: calls the plugins.
        gates: the feature gates in force; None: the default ones.

    Raises:
        InputError: a pod is unknown, or does not wait for one of these schedulers.
    """
    state = load_state(capture, gates)
    pods = named(names, capture, list(profiles)) if names else waiting(state, schedulers)
    groups = Memberships(state, profiles, engine)
    for scheduler in dict.fromkeys((*schedulers, *(pod.spec.scheduler_name for pod in pods))):
        nominate_waiting(state, profiles[scheduler], engine)
    return [explained(pod, state, profiles[pod.spec.scheduler_name], engine, groups) for pod in pods]
