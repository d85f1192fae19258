"""The recorded cluster behind the pages: its snapshot, its waiting pods, and the explanations of its pods."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from extender.analysis.explain import PodExplainer, PodReport
from extender.analysis.pending_pods import find_pods, list_pods_of_other_schedulers
from extender.analysis.pod_selection import ALL_PENDING_PODS
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.api.kinds.pod import Pod
from extender.basics.visible_text import make_value_visible
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.ui.cluster_document import make_cluster_document
from extender.ui.waiting_view import AlikePods, describe_waiting_pods


class RecordedSource:
    """Provides the contents of the pages for a recorded cluster, which does not change (implements `PageSource`).

    The entries of the page Waiting pods are cached: 20 of them take two seconds for a cluster of 5,000 nodes.

    Attributes:
        title: the names of the files.
        command_options: the options that select the same cluster and configuration on the command line.
        is_live: false, because a recording does not change.
    """

    def __init__(
        self,
        recording: Recording,
        profiles: Mapping[str, Profile],
        runtime: PluginRuntime,
        gates: FeatureGates,
        command_options: str = "",
    ) -> None:
        """Load the recording."""
        self.title = ", ".join(recording.sources)
        self.command_options, self.is_live = command_options, False
        self._recording, self._profiles, self._gates = recording, profiles, gates
        self._whole_cache: Cache | None = None
        self._explainer = PodExplainer(recording, ALL_PENDING_PODS, profiles, tuple(profiles), runtime, gates)
        self._pods_of_other_schedulers = list_pods_of_other_schedulers(recording, profiles)
        self._node_names = {obj.key: obj.spec.node_name for obj in recording.objects if isinstance(obj, Pod)}
        self._entries: dict[str, AlikePods] = {}
        self._cluster_values = make_value_visible(make_cluster_document(self.get_snapshot()))
        self._cluster_document = msgspec.json.encode(self._cluster_values)

    def get_snapshot(self) -> Snapshot:
        """Return the snapshot of the cluster. The caller must not keep it."""
        return self._explainer.cache.snapshot()

    def get_cluster_document(self) -> bytes:
        """Return the document of the page Cluster as JSON."""
        return self._cluster_document

    def get_state_id(self) -> int:
        """Return 0, because the cluster has one state."""
        return 0

    def get_version(self) -> int:
        """Return 0, because the cluster never changes."""
        return 0

    def get_totals(self) -> Sequence[Mapping[str, Any]]:
        """Return the use of each resource in the whole cluster; see `make_cluster_document`."""
        totals: Sequence[Mapping[str, Any]] = self._cluster_values["totals"]
        return totals

    def list_problems(self) -> Sequence[str]:
        """Return nothing: the explanation of a pod names the kinds that are not recorded."""
        return ()

    def get_node_names(self) -> Mapping[str, str]:
        """Return the node name of each pod by key; an empty name for a pending pod."""
        return self._node_names

    def list_pods(self) -> Iterable[Pod]:
        """Return all pods, pending and assigned."""
        return (obj for obj in self._recording.objects if isinstance(obj, Pod))

    def fork_cache(self) -> Cache:
        """Return a copy of the cluster that may be changed. It has the pods of all schedulers."""
        if self._whole_cache is None:
            has_other_pods = any(pod.spec.scheduler_name not in self._profiles for pod in self.list_pods())
            self._whole_cache = load_cache(self._recording, self._gates) if has_other_pods else self._explainer.cache
        return self._whole_cache.fork()

    def list_waiting_pods(self) -> Sequence[Sequence[Pod]]:
        """Return the pending pods in groups. The pods of a group have the same explanation."""
        return self._explainer.groups

    def list_pods_of_other_schedulers(self) -> Sequence[Pod]:
        """Return the pending pods whose schedulers have no profile here, and which are not explained."""
        return self._pods_of_other_schedulers

    def describe_waiting_pods(self, pods: Sequence[Pod]) -> AlikePods:
        """Return the entry of a group of `list_waiting_pods` for the page Waiting pods."""
        key = pods[0].key
        if key not in self._entries:
            self._entries[key] = describe_waiting_pods(self._explainer.report_group(pods[:1]), pods)
        return self._entries[key]

    def explain(self, key: str) -> tuple[Pod, PodReport]:
        """Return the pod with the key `namespace/name`, and its explanation.

        Raises:
            InputError: the pod is unknown, has finished, or belongs to a scheduler without a profile.
        """
        namespace, _, name = key.partition("/")
        (pod,) = find_pods([name], self._recording, list(self._profiles), namespace)
        return pod, self._explainer.report_group([pod])
