"""The cluster behind the pages: the cache of a running scheduler or extender, or a recorded cluster."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from extender.analysis.alike_pods import group_alike_pods
from extender.analysis.explain import PodExplainer, PodReport, add_missing_kinds, report_assigned_pod, report_pod
from extender.analysis.input.input_errors import InputError, InputErrorLine, SourceLocation
from extender.analysis.pending_pods import find_pods, list_pending_pods, list_pods_of_other_schedulers
from extender.analysis.pod_group_outcome import PodGroupSimulator
from extender.analysis.pod_selection import ALL_PENDING_PODS, PodFinder
from extender.analysis.recorded_cluster import Recording, load_cache
from extender.analysis.required_kinds import describe_missing_budgets, describe_missing_kinds
from extender.analysis.text_table import join_first
from extender.api.kinds.pod import Pod
from extender.api.scheme import KINDS
from extender.basics.visible_text import make_value_visible
from extender.cache.cache import Cache
from extender.cache.snapshot import Snapshot
from extender.cache.tables.object_store import KindVersion
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.profiles import Profile
from extender.ui.cluster_document import make_cluster_document
from extender.ui.waiting_view import AlikePods, describe_waiting_pods

REFRESH_SECONDS: Final = 5.0
"""How long the contents of the pages Cluster and Waiting pods are reused, by all readers together."""

_FIRST_VERSIONS: Final = 1 << 48
"""The number of possible first versions. JavaScript counts exactly up to 2^53."""


_EXPLAINED_NODES_PER_PAGE: Final = 100_000
"""The limit of the number of entries on a page of waiting pods, times the number of nodes."""

_MIN_ENTRIES_PER_PAGE, _MAX_ENTRIES_PER_PAGE = 10, 200


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The access of a process to a live cluster. The default reads everything, with the default kubeconfig.

    Attributes:
        command_options: the options that select the same cluster and configuration on the command line.
        list_problems: returns a line for each missing right and each lost watch; none while all is well.
        get_unreadable_kinds: returns the kinds that could not be read, such as `PersistentVolumeClaim`, with the
            reason.
        get_stale_time: returns the time in UTC since when the oldest part of the data has not been current; None
            while all watches run.
    """

    command_options: str = ""
    list_problems: Callable[[], Sequence[str]] = tuple
    get_unreadable_kinds: Callable[[], Mapping[str, str]] = dict
    get_stale_time: Callable[[], datetime | None] = lambda: None


@dataclass(frozen=True, slots=True)
class PagesState:
    """The contents of the pages Cluster and Waiting pods at a point in time. The pages of equal states are equal.

    Attributes:
        number: the number of states before this one.
        version: the number of the last change that the pages show.
        cluster_values: the document of the page Cluster; see `make_cluster_document`.
        cluster_document: the same as JSON.
        waiting_pods: the pending pods in groups. The pods of a group have the same explanation.
        other_pods: the pending pods whose schedulers have no profile here, and which are not explained.
    """

    number: int = field(compare=False)
    version: int = field(compare=False)
    time: float = field(compare=False)
    cluster_values: Mapping[str, Any] = field(compare=False)
    cluster_document: bytes
    problems: Sequence[str]
    waiting_pods: Sequence[Sequence[Pod]]
    other_pods: Sequence[Pod]
    kind_versions: Sequence[KindVersion]
    profiles: Mapping[str, Profile]
    entries: dict[str, AlikePods] = field(default_factory=dict, compare=False)


class PageSource:
    """Provides the contents of the pages from a cache that changes. `RecordedSource` does so for a recorded cluster.

    It never writes to the cache. Plugins run on runtimes of their own, so plugin metrics do not count the pages.

    Attributes:
        title: the name of the cluster.
        command_options: the options that select the same cluster and configuration on the command line.
        is_live: whether the cluster changes.
    """

    def __init__(
        self,
        title: str,
        cache: Cache,
        get_profiles: Callable[[], Mapping[str, Profile]],
        make_runtime: Callable[[], PluginRuntime],
        get_time: Callable[[], float],
        access: ClusterAccess | None = None,
    ) -> None:
        """Create the source without reading the cache.

        *get_time* returns monotonic seconds. *access* is how the process reads the cluster; None: it can read
        everything.
        """
        self._access = access or ClusterAccess()
        self.title, self.command_options, self.is_live = title, self._access.command_options, True
        self._cache, self._get_profiles, self._make_runtime = cache, get_profiles, make_runtime
        self._get_time = get_time
        self._last_state: PagesState | None = None
        # A page that is open while the process restarts must not find its version again.
        self._first_version = secrets.randbelow(_FIRST_VERSIONS)

    def get_snapshot(self) -> Snapshot:
        """Return the snapshot of the cluster. The caller must not keep it."""
        return self._cache.snapshot()

    def get_state(self) -> PagesState:
        """Return the state, which may be a few seconds old."""
        now, last_state = self._get_time(), self._last_state
        if last_state is None or now - last_state.time >= REFRESH_SECONDS:
            self._last_state = self._make_state(now, last_state)
            return self._last_state
        return last_state

    def _make_state(self, now: float, last_state: PagesState | None) -> PagesState:
        profiles = self._get_profiles()
        pods = list_pending_pods(self._cache, profiles)
        waiting_pods = group_alike_pods(pods, self._cache.make_pod_info, profiles)
        scheduler_names = {pod.spec.scheduler_name for pod in self._cache.pending_pods.values()}
        other_pods = list_pending_pods(self._cache, scheduler_names - profiles.keys())
        with self._cache.read() as snapshot:
            values = make_value_visible(make_cluster_document(snapshot))
            versions = [snapshot.kind_version(kind) for kind in KINDS.values()]
        document, problems = msgspec.json.encode(values), list(self._access.list_problems())
        state = PagesState(
            0, self._first_version, now, values, document, problems, waiting_pods, other_pods, versions, profiles
        )
        if last_state is None:
            return state
        return replace(state, number=last_state.number + 1, version=last_state.version + (state != last_state))

    def describe_missing_budgets(self) -> str:
        """Return a note if the disruption budgets are not recorded. A live cluster's are a line of `list_problems`."""
        return ""

    def describe_missing_kinds(self, _keys: Collection[str], *, preempts: bool) -> Sequence[str]:
        """Return a line for each kind that is not recorded although the nodes of some pods depend on it.

        The kinds that a live cluster does not let us read are lines of `list_problems`.
        """
        del preempts
        return ()

    def list_problems(self) -> Sequence[str]:
        """Return a line for each right that is missing and each watch that is lost; none while all is well."""
        return self._access.list_problems()

    def get_stale_time(self) -> datetime | None:
        """Return the time of the oldest data while watches are lost; see `ClusterAccess`."""
        return self._access.get_stale_time()

    def get_node_names(self) -> Mapping[str, str]:
        """Return the node name of each pod by key, `namespace/name`; an empty name for a pending pod."""
        node_names = {pod.key: "" for pod in self._cache.pending_pods.values()}
        return node_names | {pod.key: pod.node_name for pod in self._cache.assigned_pods.values()}

    def list_pods(self) -> Iterable[Pod]:
        """Return all pods, pending and assigned."""
        yield from self._cache.pending_pods.values()
        for pod in self._cache.assigned_pods.values():
            yield pod.pod

    def fork_cache(self) -> Cache:
        """Return a copy of the cluster that may be changed."""
        return self._cache.fork()

    def list_pods_of_other_schedulers(self) -> Sequence[Pod]:
        """Return the pending pods whose schedulers have no profile here, and which are not explained."""
        return self.get_state().other_pods

    def describe_waiting_pods(self, pods: Sequence[Pod]) -> AlikePods:
        """Return the entry of a group of waiting pods for the page Waiting pods.

        Raises:
            InputError: the scheduler of the pods no longer has a profile.
        """
        entries, key = self.get_state().entries, pods[0].key
        if key not in entries:
            entries[key] = describe_waiting_pods(self.explain_pending_pod(pods[0]), pods)
        return entries[key]

    def explain(self, key: str) -> tuple[Pod, PodReport]:
        """Return the pod with the key `namespace/name`, and its explanation.

        Raises:
            InputError: the pod is unknown, has finished, or belongs to a scheduler without a profile.
        """
        pending_pod = next((pod for pod in self._cache.pending_pods.values() if pod.key == key), None)
        if pending_pod is not None:
            return pending_pod, self.explain_pending_pod(pending_pod)
        assigned_pod = next((pod for pod in self._cache.assigned_pods.values() if pod.key == key), None)
        if assigned_pod is None:
            namespace, _, name = key.partition("/")
            _, message = PodFinder(self.list_pods()).find(name, namespace)
            raise self._make_error(key, message if "did you mean" in message else f"{message}, or it has finished")
        profile = self._find_profile(assigned_pod.pod)
        report = report_assigned_pod(assigned_pod, self._cache.snapshot(), profile, self._make_runtime())
        return assigned_pod.pod, self._add_missing_kinds(report, assigned_pod.pod, profile)

    def explain_pending_pod(self, pod: Pod) -> PodReport:
        """Explain a pending pod.

        Raises:
            InputError: the scheduler of the pod has no profile.
        """
        profile, runtime = self._find_profile(pod), self._make_runtime()
        simulator = PodGroupSimulator(self._cache, self._get_profiles(), runtime)
        return self._add_missing_kinds(report_pod(pod, self._cache, profile, runtime, simulator), pod, profile)

    def _add_missing_kinds(self, report: PodReport, pod: Pod, profile: Profile) -> PodReport:
        unreadable_kinds = self._access.get_unreadable_kinds()
        read_kinds = {kind.__name__ for kind in KINDS.values()} - unreadable_kinds.keys()
        return add_missing_kinds(report, pod, profile, read_kinds, unreadable_kinds)

    def _find_profile(self, pod: Pod) -> Profile:
        profile = self._get_profiles().get(pod.spec.scheduler_name)
        if profile is None:
            raise self._make_error(
                pod.key, f'waits for scheduler "{pod.spec.scheduler_name}", which has no profile here'
            )
        return profile

    def _make_error(self, key: str, message: str) -> InputError:
        return InputError([InputErrorLine(SourceLocation(self.title), message, f"Pod {key}")])


def get_entries_per_page(node_count: int) -> int:
    """Return the number of entries on a page of waiting pods, since each needs an explanation on every node."""
    entries = _EXPLAINED_NODES_PER_PAGE // max(node_count, 1)
    return max(_MIN_ENTRIES_PER_PAGE, min(_MAX_ENTRIES_PER_PAGE, entries))


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
            join_first(recording.sources),
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

    def describe_missing_kinds(self, keys: Collection[str], *, preempts: bool) -> Sequence[str]:
        """Return a line for the kinds that are not recorded, and for each unreadable kind; see `PageSource`."""
        recording, pods = self._recording, (pod for pod in self.list_pods() if pod.key in keys)
        return describe_missing_kinds(
            pods, self._profiles, recording.recorded_kinds, recording.unreadable_kinds, preempts=preempts
        )

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
