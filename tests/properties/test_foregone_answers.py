"""What a plugin lets be kept for all pods of a shape does not change with the cluster: it holds before and after."""

from typing import Any

import pytest

from extender import wiring
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import ClusterState
from extender.framework.profiles import Profile
from extender.objects.pod import Pod
from tests.build import a_node, a_pod, an_object

PROFILE: Profile = wiring.scheduling().first
ZONE = "topology.kubernetes.io/zone"
BEFORE = [plugin for plugin in PROFILE.pre_filters if hasattr(plugin, "pre_filter_kept")]
BEFORE_SCORES = [plugin for plugin in PROFILE.pre_scores if hasattr(plugin, "pre_score_kept")]


def _for_kin(plugin: Any) -> bool:
    return getattr(plugin, "kept_for_kin", False)


def _asking(resource: str) -> dict[str, Any]:
    return {"containers": [{"name": "app", "image": "app", "resources": {"requests": {resource: "1"}}}]}


def _volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "data", **source}]}


def _by_labels(field: str, term: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {field: [term]}}}


SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tolerant": {"tolerations": [{"key": "rather", "operator": "Exists"}]},
    "in a zone": {"nodeSelector": {ZONE: "a"}},
    "rather in a zone": _by_labels(
        "preferredDuringSchedulingIgnoredDuringExecution",
        {"weight": 5, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}},
    ),
    "with a port": {"containers": [{"name": "app", "image": "app", "ports": [{"hostPort": 8080}]}]},
    "with cpu": _asking("cpu"),
    "with what devices may serve": _asking("example.com/gpu"),
    "with a claim": _volume(persistentVolumeClaim={"claimName": "data"}),
    "with a claim of its own": _volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}),
    "with a disk": _volume(gcePersistentDisk={"pdName": "disk"}),
    "with devices": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
    "spread": {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": action, "labelSelector": {}}
            for action in ("DoNotSchedule", "ScheduleAnyway")
        ]
    },
}

_META = {"name": "data", "namespace": "default", "uid": "data"}
_BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
CHANGES: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**_META, **_BOUND},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "disk"},
        "status": {"phase": "Bound"},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "uid": "disk", "labels": {ZONE: "a"}},
        "spec": {"claimRef": _META, "csi": {"driver": "csi.example.com", "volumeHandle": "disk"}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu", "uid": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default", "uid": "claim"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"selector": {"app": "web"}},
    },
]


def _pod(name: str, kind: str) -> Pod:
    return a_pod(name, labels={"app": "web"}, spec=SPECS[kind])


def _changed(state: ClusterState) -> None:
    """The nodes get labels and taints, every object that pods name is there, and a pod like each other one runs."""
    taints = [{"key": "rather", "effect": "PreferNoSchedule"}]
    for name in ("one", "two"):
        state.put_node(a_node(name, labels={ZONE: name[0]}, taints=taints))
    for change in CHANGES:
        state.put_object(an_object(change))
    for kind, spec in SPECS.items():
        name = f"running-{kind.replace(' ', '-')}"
        state.put_pod(a_pod(name, node="one", labels={"app": "web"}, spec=spec))


def _before_filter(plugin: Any, query: PodQuery, cluster: Snapshot) -> tuple[bool, Any]:
    """Whether PreFilter's answer may be kept, and the answer."""
    return plugin.pre_filter_kept(query), plugin.pre_filter(query, cluster)


def _before_score(plugin: Any, query: PodQuery, cluster: Snapshot) -> tuple[bool, Any]:
    """The same of PreScore."""
    return plugin.pre_score_kept(query), plugin.pre_score(query, cluster.view())


def _questions(before: list[Any], before_scores: list[Any]) -> list[Any]:
    """Each plugin with how it is asked."""
    return [
        *(pytest.param(plugin, _before_filter, id=f"{plugin.name} at PreFilter") for plugin in before),
        *(pytest.param(plugin, _before_score, id=f"{plugin.name} at PreScore") for plugin in before_scores),
    ]


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(("plugin", "ask"), _questions(BEFORE, BEFORE_SCORES))
def test_an_answer_that_may_be_kept_holds_whatever_happens(plugin: Any, ask: Any, kind: str) -> None:
    state = ClusterState()
    state.put_node(a_node("one"))

    def answered(name: str) -> tuple[bool, Any]:
        cluster = state.snapshot()
        found: tuple[bool, Any] = ask(plugin, cluster.query(_pod(name, kind)), cluster)
        return found

    may_be_kept, before = answered("first")
    _changed(state)
    still, after = answered("second")

    assert still is may_be_kept
    assert not may_be_kept or after == before


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(("plugin", "ask"), _questions([*filter(_for_kin, BEFORE)], [*filter(_for_kin, BEFORE_SCORES)]))
def test_an_answer_that_may_be_kept_for_kin_is_theirs(plugin: Any, ask: Any, kind: str) -> None:
    """Another namespace, other labels, another owner, ten times as much of everything."""
    state = ClusterState()
    state.put_node(a_node("one"))
    _changed(state)
    cluster = state.snapshot()
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "set", "uid": "set", "controller": True}
    meta, spec = {"namespace": "team", "ownerReferences": [owner]}, SPECS[kind]
    containers = spec.get("containers", [{"name": "app", "image": "app"}])
    first, other = (
        a_pod(name, labels={"app": name}, metadata=more, spec={**spec, "containers": _with_amounts(containers, amount)})
        for name, more, amount in (("web", {}, "1"), ("kin", meta, "10"))
    )
    one, its_kin = cluster.query(first), cluster.query(other)
    assert one.shape.kin is its_kin.shape.kin

    may_be_kept, answer = ask(plugin, one, cluster)
    may_be_kept_of_kin, answer_of_kin = ask(plugin, its_kin, cluster)

    assert may_be_kept is may_be_kept_of_kin
    assert not may_be_kept or answer == answer_of_kin


def _with_amounts(containers: list[dict[str, Any]], amount: str) -> list[dict[str, Any]]:
    """*containers* that ask for *amount* of what they ask for, and of cpu and memory."""

    def asking(container: dict[str, Any]) -> dict[str, Any]:
        wanted = container.get("resources", {}).get("requests", {})
        return {**container, "resources": {"requests": dict.fromkeys([*wanted, "cpu", "memory"], amount)}}

    return list(map(asking, containers))


def test_every_answer_about_a_plain_pod_may_be_kept_but_what_other_pods_and_services_have_a_say_in() -> None:
    state = ClusterState()
    state.put_node(a_node("one"))
    query = state.snapshot().query(_pod("pod", "plain"))

    asked = {plugin.name for plugin in PROFILE.pre_filters if plugin not in BEFORE or not plugin.pre_filter_kept(query)}
    rated = {p.name for p in PROFILE.pre_scores if p not in BEFORE_SCORES or not p.pre_score_kept(query)}

    assert asked == {"InterPodAffinity"}
    assert {p.name for p in (*BEFORE, *BEFORE_SCORES) if not _for_kin(p)} == {
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
    }
    assert rated == {"InterPodAffinity", "PodTopologySpread"}
