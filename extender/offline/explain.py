"""The pods asked about, each examined alone on the cluster as it was recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.examine import Examination, examine
from extender.framework.profiles import Profile
from extender.offline.capture import Capture, load_state
from extender.offline.waiting import named, nominate_waiting, waiting


@dataclass(frozen=True, slots=True)
class Explained:
    """One pod's examination, and the cluster it is about."""

    examination: Examination
    cluster: Snapshot


def explain(
    capture: Capture, names: Sequence[str], profiles: Mapping[str, Profile], first: str, engine: Engine
) -> list[Explained]:
    """Examines the pods of these names, each by the profile of its scheduler; without names all that wait for *first*.

    Pods with a nominated node that wait for the same scheduler count there. Nothing is assumed, bound or evicted.

    Args:
        capture: the recorded cluster.
        names: as for `waiting.named`.
        profiles: by scheduler name.
        first: the scheduler name that counts where no pod is named.
        engine: calls the plugins.

    Raises:
        InputError: a pod is unknown, or does not wait for one of these schedulers.
    """
    state = load_state(capture)
    pods = named(names, capture, list(profiles)) if names else waiting(state, (first,))
    found: dict[str, Explained] = {}
    for scheduler in dict.fromkeys(pod.spec.scheduler_name for pod in pods):
        nominate_waiting(state, profiles[scheduler], engine)
        cluster = state.snapshot()
        for pod in pods:
            if pod.spec.scheduler_name == scheduler:
                examination = examine(cluster.query(pod), cluster, profiles[scheduler], engine)
                found[pod.key] = Explained(examination, cluster)
    return [found[pod.key] for pod in pods]
