"""The public API for tests of plugins. It makes a small cluster, and runs one plugin or a whole profile on it.

cluster = make_cluster(make_node("big", cpu="8"), make_node("small", cpu="1"), make_pod("web", cpu="2"))
decision = run_plugin(MyPlugin, cluster, "default/web")
assert decision.rejected == {"small": ("node(s) are too small",)}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.config import load
from extender.config.feature_gates import FeatureGates
from extender.config.model import API_VERSION, KIND
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.explain_pod import PodExplanation, explain_pod
from extender.framework.node_info import NodeInfo, iter_node_infos
from extender.framework.per_node.decorators import make_uncacheable
from extender.framework.profile_builder import build_profiles
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.plugins.default_binder import DefaultBinder
from extender.plugins.priority_sort import PrioritySort
from extender.plugins.registry import load_registry, validate_plugins

__all__ = [
    "Cluster", "PluginDecision", "PluginFailedError", "check_cached_results", "load_registry", "make_cluster",
    "make_node", "make_pod", "run_plugin", "run_profile",
]  # fmt: skip

Manifest = Mapping[str, Any]
"""A Kubernetes object as plain values, including apiVersion and kind."""

_CLUSTER_SOURCE: Final = "cluster of the test"


class PluginFailedError(AssertionError):
    """A plugin raised or returned an invalid result. The message names the plugin."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster on which tests run plugins. Its pods without `spec.nodeName` are pending."""

    cache: Cache
    pods: Mapping[str, Pod]

    def pod(self, name: str) -> Pod:
        """Return the typed pod with this name. *name* is `namespace/name`, or a name in the namespace `default`.

        Raises:
            KeyError: there is no such pod.
        """
        key = name if "/" in name else f"default/{name}"
        if key not in self.pods:
            raise KeyError(f"there is no pod {key}; the pods are {', '.join(self.pods)}")
        return self.pods[key]

    def pod_info(self, name: str) -> PodInfo:
        """Return the pod as vectorized plugins receive it. *name* is as in `pod`.

        Raises:
            KeyError: there is no such pod.
        """
        return self.cache.make_pod_info(self.pod(name))

    def snapshot(self) -> Snapshot:
        """Return the nodes and their pods as vectorized plugins receive them."""
        return self.cache.snapshot()

    def node(self, name: str) -> NodeInfo:
        """Return the node with this name, including its pods.

        Raises:
            KeyError: there is no such node.
        """
        snapshot = self.cache.snapshot()
        row = snapshot.row(name)
        if row is None:
            raise KeyError(f"there is no node {name}; the nodes are {', '.join(snapshot.names)}")
        return next(iter_node_infos(snapshot.view(np.array([row], dtype=np.int64))))


@dataclass(frozen=True, slots=True)
class PluginDecision:
    """The result of a plugin or a profile for one pod.

    Attributes:
        feasible_nodes: the names of the nodes that can run the pod, in the order of the cluster.
        rejected: the reasons of the first plugin that rejects a node, by node name.
        rejected_by: the name of the first plugin that rejects a node, by node name.
        unresolvable: the names of the rejected nodes on which preemption cannot help.
        raw_scores: the raw scores of the feasible nodes, by plugin and node.
        normalized_scores: the normalized scores, 0 to 100, by plugin and node.
        total_scores: the sums of the weighted scores, by node.
        message: kube-scheduler's message if no node is feasible, else None.
    """

    feasible_nodes: tuple[str, ...] = ()
    rejected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rejected_by: Mapping[str, str] = field(default_factory=dict)
    unresolvable: frozenset[str] = frozenset()
    raw_scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    normalized_scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    total_scores: Mapping[str, int] = field(default_factory=dict)
    message: str | None = None

    @property
    def scores(self) -> Mapping[str, int]:
        """The normalized scores of the only Score plugin, 0 to 100, by node.

        Raises:
            ValueError: there is no Score plugin, or more than one. Use `normalized_scores` for several plugins.
        """
        (scores,) = self.normalized_scores.values()
        return scores


def make_cluster(*objects: str | Manifest) -> Cluster:
    """Return a cluster with *objects*.

    Args:
        objects: plain values, for instance from `make_node` and `make_pod`, or YAML texts with one or more objects.

    Raises:
        InputError: an object is invalid.
    """
    texts = [item for item in objects if isinstance(item, str)]
    manifests = [item for item in objects if not isinstance(item, str)]
    if manifests or not texts:
        texts.append(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": manifests}).decode())
    recording = parse_recording("\n---\n".join(texts).encode(), _CLUSTER_SOURCE)
    pods = {item.key: item for item in recording.objects if isinstance(item, Pod)}
    return Cluster(load_cache(recording), pods)


def make_node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    resources: Mapping[str, str] | None = None,
    **amounts: str,
) -> Manifest:
    """Return a node as plain values.

    *spec* is its spec, such as `{"taints": [...]}`. *resources* are its allocatable resources by name, such as
    `{"example.com/gpu": "2"}`; *amounts* are the same as keywords, such as `cpu="8"`. The default is 4 CPUs, 16Gi of
    memory and 110 pods.
    """
    all_labels = {"kubernetes.io/hostname": name, **(labels or {})}
    metadata = {"name": name, "labels": all_labels, "annotations": annotations or {}}
    allocatable = {"cpu": "4", "memory": "16Gi", "pods": "110", **(resources or {}), **amounts}
    status = {"allocatable": allocatable, "capacity": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec or {}, "status": status}


def make_pod(  # noqa: PLR0913  # tests read best with one keyword for each field
    name: str,
    *,
    namespace: str = "default",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    requests: Mapping[str, str] | None = None,
    **amounts: str,
) -> Manifest:
    """Return a pod as plain values.

    Args:
        name: the name of the pod.
        namespace: the namespace of the pod.
        node: the name of the node that the pod runs on; empty for a pending pod.
        labels: the labels of the pod.
        annotations: the annotations of the pod.
        spec: more fields of the pod's spec.
        requests: the resource requests of the pod's only container by name, such as `{"example.com/gpu": "1"}`.
        amounts: the same as keywords, such as `cpu="1"`.
    """
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}}
    container = {"name": "app", "image": "app", "resources": {"requests": {**(requests or {}), **amounts}}}
    node_name = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **node_name, **(spec or {})},
    }


def run_plugin(plugin: object, cluster: Cluster, pod: str, args: Mapping[str, Any] | None = None) -> PluginDecision:
    """Run *plugin* alone for *pod*.

    Args:
        plugin: a plugin class, or a function or class decorated with `filter_plugin`, `score_plugin` or
            `per_node_plugin`.
        cluster: the cluster.
        pod: the name of the pod, as in `Cluster.pod`.
        args: the plugin's arguments, as in a profile's pluginConfig.

    Raises:
        ConfigError: the plugin or its arguments are invalid.
        PluginFailedError: the plugin raised or returned an invalid result.
    """
    return _run_profile(cluster, pod, _build_single_plugin_profile(plugin, args))


def run_profile(configuration: str | Mapping[str, Any], cluster: Cluster, pod: str, *plugins: object) -> PluginDecision:
    """Run the first profile of a configuration for *pod*.

    Args:
        configuration: a KubeSchedulerConfiguration as YAML or plain values.
        cluster: the cluster.
        pod: the name of the pod, as in `Cluster.pod`.
        plugins: more plugins for the profile, as in `run_plugin`. Built-in and installed plugins need not be passed.

    Raises:
        ConfigError: the configuration or a plugin is invalid.
        PluginFailedError: a plugin raised or returned an invalid result.
    """
    if isinstance(configuration, str):
        loaded_configuration = load.load_configuration(configuration.encode(), "configuration of the test")
    else:
        loaded_configuration = load.from_builtins(configuration, "configuration of the test")
    profile_set = build_profiles(
        loaded_configuration, {**load_registry(), **validate_plugins(*plugins)}, FeatureGates()
    )
    return _run_profile(cluster, pod, profile_set.profiles[loaded_configuration.profiles[0].scheduler_name])


def check_cached_results(plugin: object, cluster: Cluster, args: Mapping[str, Any] | None = None) -> None:
    """Check that cached and fresh results of *plugin* are equal, while pending pods are assigned to nodes one by one.

    For fresh results a per-node plugin gets complete pods, so a rule that reads what `cacheable` leaves out fails.

    Raises:
        PluginFailedError: a cached result differs from a fresh one.
        ConfigError: as in `run_plugin`.
    """
    profile = _build_single_plugin_profile(plugin, args)
    fresh_profile = _build_single_plugin_profile(make_uncacheable(plugin), args)
    cached_runtime, fresh_runtime = wiring.make_runtime(), wiring.make_runtime(cache_results=False)
    for pod in list(cluster.cache.pending_pods.values()):
        for pending_pod in list(cluster.cache.pending_pods.values()):
            pod_info = cluster.cache.make_pod_info(pending_pod)
            with cluster.cache.read() as snapshot:
                cached_decision = _make_decision(explain_pod(pod_info, snapshot, profile, cached_runtime))
                fresh_decision = _make_decision(explain_pod(pod_info, snapshot, fresh_profile, fresh_runtime))
            if cached_decision != fresh_decision:
                raise PluginFailedError(
                    f"pod {pending_pod.key}: the cached result is {cached_decision}, a fresh one is {fresh_decision}"
                )
        with cluster.cache.read() as snapshot:
            diagnosis = find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, profile, fresh_runtime)
        feasible = diagnosis.feasible
        node_name = cluster.cache.names[int(feasible.argmax())] if feasible.any() else ""
        if node_name:
            cluster.cache.assume(pod, node_name)


def _build_single_plugin_profile(plugin: object, args: Mapping[str, Any] | None) -> Profile:
    """Return a profile in which only *plugin* filters and scores."""
    plugins = validate_plugins(plugin)
    (name,) = plugins
    enabled = [{"name": enabled_name} for enabled_name in dict.fromkeys((PrioritySort.name, DefaultBinder.name, name))]
    profile: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": name, "args": args}]
    configuration = load.from_builtins(
        {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "arguments of the test"
    )
    registry: dict[str, type[Any]] = {PrioritySort.name: PrioritySort, DefaultBinder.name: DefaultBinder, **plugins}
    (built_profile,) = build_profiles(configuration, registry, FeatureGates()).profiles.values()
    return built_profile


def _run_profile(cluster: Cluster, pod: str, profile: Profile) -> PluginDecision:
    snapshot = cluster.cache.snapshot()
    pod_info = snapshot.make_pod_info(cluster.pod(pod))
    return _make_decision(explain_pod(pod_info, snapshot, profile, wiring.make_runtime()))


def _make_decision(explanation: PodExplanation) -> PluginDecision:
    """Convert *explanation* to a decision.

    Raises:
        PluginFailedError: a plugin failed.
    """
    pre_enqueue_status, diagnosis, ranking = explanation.pre_enqueue_status, explanation.diagnosis, explanation.ranking
    if pre_enqueue_status is not None or diagnosis is None:
        status = pre_enqueue_status or Status(Code.ERROR)
        _raise_if_failed(status)
        return PluginDecision(message=status.message)
    _raise_if_failed(diagnosis.error)
    _raise_if_failed(ranking.error if ranking else None)
    pod_status, node_names = diagnosis.pre_filter_run.status, explanation.node_names
    statuses: dict[str, Status] = dict.fromkeys(node_names, pod_status) if pod_status is not None else {}
    failures = {name: node.first_failure for name, node in explanation.nodes.items()}
    statuses |= {name: status for name, status in failures.items() if status is not None}
    scored_names = [node_names[row] for row in ranking.rows.tolist()] if ranking else []
    scores_by_plugin = ranking.scores_by_plugin.items() if ranking else ()

    def scores_by_node(scores: Any) -> Mapping[str, int]:
        return dict(zip(scored_names, scores.tolist(), strict=True))

    return PluginDecision(
        feasible_nodes=tuple(node_names[row] for row in np.flatnonzero(diagnosis.feasible).tolist()),
        rejected={name: status.reasons for name, status in statuses.items()},
        rejected_by={name: status.plugin for name, status in statuses.items()},
        unresolvable=frozenset(name for name, status in statuses.items() if status.code is Code.UNRESOLVABLE),
        raw_scores={plugin: scores_by_node(scores.raw) for plugin, scores in scores_by_plugin},
        normalized_scores={plugin: scores_by_node(scores.normalized) for plugin, scores in scores_by_plugin},
        total_scores=scores_by_node(ranking.totals) if ranking else {},
        message=None if diagnosis.has_feasible_node else explanation.message,
    )


def _raise_if_failed(status: Status | None) -> None:
    if status is not None and status.code is Code.ERROR:
        raise PluginFailedError(status.message)
