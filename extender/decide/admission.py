"""Whether a pod may enter the queue at all: PreEnqueue of every plugin, in configured order. Source: A053, D038."""

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Status


def held_back(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine) -> Status | None:
    """The status of the first plugin that keeps *pod* out, or None. A plugin that raises keeps it out with an Error."""
    began = engine.run.begin()
    held = _first_to_hold(pod, cluster, profile, engine)
    engine.run.passed(profile.scheduler_name, "PreEnqueue", held, began)
    return held


def _first_to_hold(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine) -> Status | None:
    for plugin in profile.pre_enqueues:
        try:
            status = engine.run.pre_enqueue(plugin, pod, cluster)
        except PluginError as wrong:
            return wrong.status
        if status is not None and not status.ok:
            return status.by(plugin.name)
    return None
