"""Whether a pod may enter the queue at all: PreEnqueue of every plugin, in configured order. Source: A053, D038."""

from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.framework.profiles import Profile
from extender.framework.runner import PluginError
from extender.framework.verdict import Status


def held_back(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine) -> Status | None:
    """The status of the first plugin that keeps *pod* out, or None. A plugin that raises keeps it out with an Error."""
    return first_to_hold(pod, cluster, profile, engine, "")


def first_to_hold(pod: PodQuery, cluster: Snapshot, profile: Profile, engine: Engine, first: str) -> Status | None:
    """As `held_back`, with the plugin named *first* asked before the others. Source: D039."""
    began = engine.run.begin()
    held = None
    for plugin in sorted(profile.pre_enqueues, key=lambda plugin: plugin.name != first):
        try:
            status = engine.run.pre_enqueue(plugin, pod, cluster)
        except PluginError as wrong:
            held = wrong.status
        else:
            held = status.by(plugin.name) if status is not None and not status.ok else None
        if held is not None:
            break
    # kube-scheduler counts every round as a success, whatever comes of it, and so must whoever reads the figures.
    engine.run.passed(profile.scheduler_name, "PreEnqueue", None, began)
    return held
