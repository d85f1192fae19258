"""For the tests of plugins: a small cluster, one plugin or a whole profile, and what they decide.

cluster = a_cluster(a_node("big", cpu="8"), a_node("small", cpu="1"), a_pod("web", cpu="2"))
answer = try_plugin(MyPlugin, cluster, "default/web")
assert answer.refused == {"small": ("node(s) are too small",)}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from extender import wiring
from extender.catalogue import catalogue
from extender.cluster.state import ClusterState
from extender.config import load
from extender.config.faults import ConfigError, Fault
from extender.config.gates import FeatureGates
from extender.config.model import API_VERSION, KIND
from extender.decide.examine import Examination, examine
from extender.decide.feasible import feasible
from extender.framework.contract import wrong_with
from extender.framework.node_info import NodeInfo, each_node
from extender.framework.profiles import Profile
from extender.framework.registry import build
from extender.framework.rowwise import plugin_class
from extender.framework.verdict import Code, Status
from extender.objects.pod import Pod
from extender.offline.capture import load_state, parse_capture
from extender.plugins.default_binder import DefaultBinder
from extender.plugins.priority_sort import PrioritySort

Object = Mapping[str, Any]
"""A Kubernetes object in plain values, with apiVersion and kind."""

_SOURCE: Final = "cluster of the test"


class PluginFailedError(AssertionError):
    """A plugin raised, or answered with something that is no answer; the text names it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster to try plugins on. Pods without `spec.nodeName` are the ones that may ask for a node."""

    state: ClusterState
    pods: Mapping[str, Pod]

    def pod(self, name: str) -> Pod:
        """The pod *name* (`namespace/name`, or a name in the namespace `default`), typed.

        Raises:
            KeyError: there is none.
        """
        return self.pods[name if "/" in name else f"default/{name}"]

    def node(self, name: str) -> NodeInfo:
        """The node *name* with what is on it.

        Raises:
            KeyError: there is none.
        """
        snapshot = self.state.snapshot()
        row = snapshot.row(name)
        if row is None:
            raise KeyError(name)
        return next(each_node(snapshot.view(np.array([row], dtype=np.int64))))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a plugin or a profile says about one pod.

    Attributes:
        feasible: the nodes that can take the pod, in the order of the cluster.
        refused: the other nodes, with the reasons of the first plugin that refuses each.
        refused_by: that plugin.
        final: the refused nodes on which evicting pods would not help.
        raw: by plugin, the raw scores of the feasible nodes.
        normalized: by plugin, the same brought to 0..100.
        totals: the weighted sums.
        message: kube-scheduler's message if no node is feasible, else None.
    """

    feasible: tuple[str, ...] = ()
    refused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refused_by: Mapping[str, str] = field(default_factory=dict)
    final: frozenset[str] = frozenset()
    raw: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    normalized: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    message: str | None = None

    @property
    def scores(self) -> Mapping[str, int]:
        """The scores from 0 to 100 by node, where just one plugin scores.

        Raises:
            ValueError: none does, or several do: see `normalized`.
        """
        (scores,) = self.normalized.values()
        return scores


def a_cluster(*parts: str | Object) -> Cluster:
    """A cluster of objects: each part is one in plain values (see `a_node`, `a_pod`), or YAML text with any number.

    Raises:
        InputError: something in it cannot be used.
    """
    texts = [part for part in parts if isinstance(part, str)]
    items = [part for part in parts if not isinstance(part, str)]
    if items or not texts:
        texts.append(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}).decode())
    capture = parse_capture("\n---\n".join(texts).encode(), _SOURCE)
    pods = {thing.key: thing for thing in capture.objects if isinstance(thing, Pod)}
    return Cluster(load_state(capture), pods)


def a_node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    **more: str,
) -> Object:
    """A node in plain values; *more* are further resources it offers, such as `**{"example.com/gpu": "2"}`."""
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **more}
    status = {"allocatable": allocatable, "capacity": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def a_pod(
    name: str,
    *,
    namespace: str = "default",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    **requests: str,
) -> Object:
    """A pod in plain values, waiting or on *node*; *requests* are its one container's, *spec* adds to its spec."""
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}}
    container = {"name": "app", "image": "app", "resources": {"requests": requests}}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **placed, **(spec or {})},
    }


def try_plugin(plugin: object, cluster: Cluster, pod: str, args: Mapping[str, Any] | None = None) -> Answer:
    """What *plugin* alone says about *pod*.

    Args:
        plugin: a plugin class, or a function or class decorated with `filter_plugin`, `score_plugin` or `row_plugin`.
        cluster: to ask about.
        pod: as in `Cluster.pod`.
        args: its arguments, as in a profile's pluginConfig.

    Raises:
        ConfigError: it cannot be a plugin, or its arguments are wrong.
        PluginFailedError: it raised or gave no proper answer.
    """
    return _answer(cluster, pod, _alone(plugin, args))


def try_profile(configuration: str | Mapping[str, Any], cluster: Cluster, pod: str, *plugins: object) -> Answer:
    """What the first profile of a configuration says about *pod*.

    Args:
        configuration: a KubeSchedulerConfiguration, YAML or plain values.
        cluster: to ask about.
        pod: as in `Cluster.pod`.
        plugins: as in `try_plugin`; they can be enabled beside those built in and installed.

    Raises:
        ConfigError: the configuration is wrong, or a plugin cannot be one.
        PluginFailedError: a plugin raised or gave no proper answer.
    """
    if isinstance(configuration, str):
        chosen = load.load(configuration.encode(), "configuration of the test")
    else:
        chosen = load.from_builtins(configuration, "configuration of the test")
    registry = build(chosen, {**catalogue(), **_named(*plugins)}, FeatureGates())
    return _answer(cluster, pod, registry.profiles[chosen.profiles[0].scheduler_name])


def check_kept_answers(plugin: object, cluster: Cluster, args: Mapping[str, Any] | None = None) -> None:
    """Check that keeping answers between cycles changes none, while one waiting pod after another is put on a node.

    Raises:
        PluginFailedError: an answer that was kept is not the one the plugin would give.
        ConfigError: as `try_plugin`.
    """
    profile = _alone(plugin, args)
    keeping, asking = wiring.engine(), wiring.engine(keep=False)
    for pod in list(cluster.state.waiting.values()):
        for again in list(cluster.state.waiting.values()):
            snapshot = cluster.state.snapshot()
            query = snapshot.query(again)
            kept = _summed_up(examine(query, snapshot, profile, keeping))
            fresh = _summed_up(examine(query, snapshot, profile, asking))
            del snapshot
            if kept != fresh:
                raise PluginFailedError(f"pod {again.key}: the answer kept is {kept}, the plugin would say {fresh}")
        snapshot = cluster.state.snapshot()
        room = feasible(snapshot.query(pod), snapshot, profile, asking).feasible
        chosen = snapshot.names[int(room.argmax())] if room.any() else ""
        del snapshot
        if chosen:
            cluster.state.assume(pod, chosen)


def _named(*plugins: object) -> dict[str, type[Any]]:
    """Plugin classes by name.

    Raises:
        ConfigError: one of them cannot be a plugin.
    """
    faults: list[Fault] = []
    named: dict[str, type[Any]] = {}
    for each in plugins:
        plugin: Any = plugin_class(each)
        wrong = wrong_with(plugin)
        faults += [Fault(f"plugin {getattr(plugin, 'name', plugin)}", message) for message in wrong]
        if not wrong:
            named[plugin.name] = plugin
    if faults:
        raise ConfigError(faults)
    return named


def _alone(plugin: object, args: Mapping[str, Any] | None) -> Profile:
    """A profile in which only *plugin* filters and scores."""
    own = _named(plugin)
    (name,) = own
    enabled = [{"name": each} for each in dict.fromkeys((PrioritySort.name, DefaultBinder.name, name))]
    profile: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": name, "args": args}]
    chosen = load.from_builtins(
        {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "arguments of the test"
    )
    known: dict[str, type[Any]] = {PrioritySort.name: PrioritySort, DefaultBinder.name: DefaultBinder, **own}
    (built,) = build(chosen, known, FeatureGates()).profiles.values()
    return built


def _answer(cluster: Cluster, pod: str, profile: Profile) -> Answer:
    snapshot = cluster.state.snapshot()
    found = examine(snapshot.query(cluster.pod(pod)), snapshot, profile, wiring.engine())
    return _summed_up(found)


def _summed_up(found: Examination) -> Answer:
    """An examination in the words of a test.

    Raises:
        PluginFailedError: a plugin is at fault.
    """
    held, attempt, ranking = found.held_back, found.attempt, found.ranking
    if held is not None or attempt is None:
        status = held or Status(Code.ERROR)
        _raise_if_failed(status)
        return Answer(message=status.message)
    _raise_if_failed(attempt.error)
    _raise_if_failed(ranking.error if ranking else None)
    before = attempt.before.status
    refusals: dict[str, Status] = dict.fromkeys(found.names, before) if before is not None else {}
    refusals |= {name: each.first_failure for name, each in found.nodes.items() if each.first_failure is not None}
    rows = ranking.rows.tolist() if ranking else []
    names = [found.names[row] for row in rows]
    by_plugin = ranking.plugins.items() if ranking else ()

    def by_node(scores: Any) -> Mapping[str, int]:
        return dict(zip(names, scores.tolist(), strict=True))

    return Answer(
        feasible=tuple(found.names[row] for row in np.flatnonzero(attempt.feasible).tolist()),
        refused={name: status.reasons for name, status in refusals.items()},
        refused_by={name: status.plugin for name, status in refusals.items()},
        final=frozenset(name for name, status in refusals.items() if status.code is Code.UNRESOLVABLE),
        raw={plugin: by_node(scores.raw) for plugin, scores in by_plugin},
        normalized={plugin: by_node(scores.normalized) for plugin, scores in by_plugin},
        totals=by_node(ranking.totals) if ranking else {},
        message=None if attempt.any else found.message,
    )


def _raise_if_failed(status: Status | None) -> None:
    if status is not None and status.code is Code.ERROR:
        raise PluginFailedError(status.message)
