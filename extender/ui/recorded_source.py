"""The recorded cluster behind the pages."""

from collections.abc import Iterable, Mapping, Sequence

from extender.analysis.explain import PodExplainer, PodReport
from extender.analysis.pending_pods import find_pods, list_pods_of_other_schedulers
from extender.analysis.pod_selection import ALL_PENDING_PODS
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.analysis.required_kinds import describe_missing_budgets
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.ui.page_source import ClusterAccess, PageSource


class RecordedSource(PageSource):
    """Provides the contents of the pages for a recorded cluster, which does not change.

    The entries of the page Waiting pods are cached: 20 of them take two seconds for a cluster of 5,000 nodes.
    """

    def __init__(
        self,
        recording: Recording,
        profiles: Mapping[str, Profile],
        runtime: PluginRuntime,
        command_options: str = "",
    ) -> None:
        """Load the recording; the names of its files are the title."""
        self._recording, self._profiles = recording, profiles
        self._whole_cache: Cache | None = None
        self._explainer = PodExplainer(recording, ALL_PENDING_PODS, profiles, tuple(profiles), runtime)
        super().__init__(
            ", ".join(recording.sources),
            self._explainer.cache,
            lambda: profiles,
            lambda: runtime,
            lambda: 0.0,
            ClusterAccess(command_options),
        )
        self.is_live, self._first_version = False, 0

    def get_node_names(self) -> Mapping[str, str]:
        """Return the node name of each pod, also of pods that have finished; see `PageSource`."""
        return {pod.key: pod.spec.node_name for pod in self.list_pods()}

    def list_pods(self) -> Iterable[Pod]:
        """Return all pods, also those that have finished, and those of all schedulers."""
        return (obj for obj in self._recording.objects if isinstance(obj, Pod))

    def describe_missing_budgets(self) -> str:
        """Return a note if the disruption budgets are not recorded; see `PageSource`."""
        return describe_missing_budgets(self._recording.recorded_kinds, self._recording.unreadable_kinds)

    def fork_cache(self) -> Cache:
        """Return a copy of the cluster that may be changed. It has the pods of all schedulers."""
        if self._whole_cache is None:
            has_other_pods = any(pod.spec.scheduler_name not in self._profiles for pod in self.list_pods())
            gates = next(iter(self._profiles.values())).gates
            self._whole_cache = load_cache(self._recording, gates) if has_other_pods else self._explainer.cache
        return self._whole_cache.fork()

    def list_pods_of_other_schedulers(self) -> Sequence[Pod]:
        """Return the pending pods whose schedulers have no profile here, which are not in the cache."""
        return list_pods_of_other_schedulers(self._recording, self._profiles)

    def explain(self, key: str) -> tuple[Pod, PodReport]:
        """Return the pod with the key `namespace/name`, and its explanation.

        Raises:
            InputError: the pod is unknown, has finished, or belongs to a scheduler without a profile.
        """
        namespace, _, name = key.partition("/")
        (pod,) = find_pods([name], self._recording, list(self._profiles), namespace)
        return pod, self._explainer.report_group([pod])

    def explain_pending_pod(self, pod: Pod) -> PodReport:
        """Explain a pending pod; the report names the kinds that are not recorded."""
        return self._explainer.report_group([pod])
