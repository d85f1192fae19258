"""The cluster of an MCP server: read once from files, or again from a live cluster when it is too old."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from extender.analysis.explain import PodExplainer, PodReport
from extender.analysis.pending_pods import find_pods, nominate_pending_pods
from extender.analysis.pod_selection import ALL_PENDING_PODS
from extender.analysis.recorded_cluster import Recording
from extender.api.kinds.pod import Pod
from extender.basics.clock import Clock
from extender.cli.recording_options import Cluster, make_offline_runtime
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.planning.what_if import WhatIfRunner


class LoadedCluster:
    """A cluster with its configuration. What the questions share is loaded when the first question needs it.

    Attributes:
        check_cancelled: the function that raises an exception if the client has cancelled the question.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.check_cancelled: Callable[[], None] = lambda: None
        self.recording: Recording = cluster.recording
        self.setup = cluster.setup
        self.runtime: PluginRuntime = make_offline_runtime(verbose=False)

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles by scheduler name."""
        return self.setup.profiles

    @cached_property
    def explainer(self) -> PodExplainer:
        """The explainer of all pods, with its own cache."""
        names = tuple(self.profiles)
        return PodExplainer(self.recording, ALL_PENDING_PODS, self.profiles, names, self.runtime)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster for questions that change it and undo their changes."""
        return self.copy_cluster()

    @cached_property
    def runner(self) -> WhatIfRunner:
        """The runner of scenarios. It nominates the pending pods that have a nominated node."""
        return WhatIfRunner(self.cluster.cache, self.profiles, self.runtime)

    def copy_cluster(self) -> Cluster:
        """Return a cluster with a cache of its own."""
        return Cluster(self.recording, self.setup)

    def make_changeable_copy(self) -> Cluster:
        """Return a copy to which objects can be added, with its nominated pods."""
        cluster = self.copy_cluster()
        for profile in self.profiles.values():
            nominate_pending_pods(cluster.cache, profile, self.runtime)
        return cluster

    def find_pods(self, name: str, namespace: str) -> list[Pod]:
        """Return the pod or the pods of the workload *name*.

        Raises:
            InputError: there is no such pod.
        """
        return find_pods((name,), self.recording, list(self.profiles), namespace)

    def report_group(self, group: Sequence[Pod]) -> PodReport:
        """Explain the first pod of a group of alike pods, unless the client has cancelled the question."""
        self.check_cancelled()
        return self.explainer.report_group(group)


@dataclass(slots=True)
class ClusterSource:
    """Loads the cluster for the first question, and again for a question after *max_age* seconds.

    Attributes:
        max_age: the age in seconds at which the cluster is read again; None for a recording, which does not change.
    """

    read: Callable[[], Cluster]
    clock: Clock
    max_age: float | None = None
    _loaded: LoadedCluster | None = None
    _load_time: float = 0.0

    def get(self) -> LoadedCluster:
        """Return the cluster.

        Raises:
            ConfigError, InputError, UnreadableError: the cluster cannot be read.
        """
        now = self.clock.monotonic()
        is_old = self.max_age is not None and now - self._load_time > self.max_age
        if self._loaded is None or is_old:
            self._loaded = LoadedCluster(self.read())
            self._load_time = now
        return self._loaded

    def discard(self) -> None:
        """Load the cluster again for the next question, because the last one ended with an unexpected error."""
        self._loaded = None
