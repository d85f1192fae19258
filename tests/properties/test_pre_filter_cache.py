"""Cacheable PreFilter and PreScore results do not depend on the cluster."""

from typing import Any, cast

import pytest

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import Snapshot
from extender.framework.extension_points import CacheablePreFilter, CacheablePreScore
from extender.framework.profiles import Profile
from tests.build import make_node, make_object, make_pod

PROFILE: Profile = wiring.build_setup().first_profile
ZONE = "topology.kubernetes.io/zone"
BEFORE = [plugin for plugin in PROFILE.pre_filter_plugins if hasattr(plugin, "pre_filter_is_cacheable")]
BEFORE_SCORES = [plugin for plugin in PROFILE.pre_score_plugins if hasattr(plugin, "pre_score_is_cacheable")]


def _is_cacheable_for_spec_class(plugin: Any) -> bool:
    return getattr(plugin, "cacheable_for_spec_class", False)


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
    return make_pod(name, labels={"app": "web"}, spec=SPECS[kind])


def _changed(state: Cache) -> None:
    """Return a cluster with other labels and taints, all objects that pods name, and a running copy of each pod."""
    taints = [{"key": "rather", "effect": "PreferNoSchedule"}]
    for name in ("one", "two"):
        state.add_or_update_node(make_node(name, labels={ZONE: name[0]}, taints=taints))
    for change in CHANGES:
        state.add_or_update_object(make_object(change))
    for kind, spec in SPECS.items():
        name = f"running-{kind.replace(' ', '-')}"
        state.add_or_update_pod(make_pod(name, node="one", labels={"app": "web"}, spec=spec))


def _run_pre_filter(plugin: Any, pod_info: PodInfo, snapshot: Snapshot) -> tuple[bool, Any]:
    """Return whether the PreFilter result is cacheable, and the result."""
    return plugin.pre_filter_is_cacheable(pod_info), plugin.pre_filter(pod_info, snapshot)


def _run_pre_score(plugin: Any, pod_info: PodInfo, snapshot: Snapshot) -> tuple[bool, Any]:
    """Return whether the PreScore result is cacheable, and the result."""
    return plugin.pre_score_is_cacheable(pod_info), plugin.pre_score(pod_info, snapshot.view())


def _plugin_calls(before: list[Any], before_scores: list[Any]) -> list[Any]:
    """Return each plugin with the function that runs it."""
    return [
        *(pytest.param(plugin, _run_pre_filter, id=f"{plugin.name} at PreFilter") for plugin in before),
        *(pytest.param(plugin, _run_pre_score, id=f"{plugin.name} at PreScore") for plugin in before_scores),
    ]


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(("plugin", "ask"), _plugin_calls(BEFORE, BEFORE_SCORES))
def test_a_cacheable_result_does_not_depend_on_the_cluster(plugin: Any, ask: Any, kind: str) -> None:
    state = Cache()
    state.add_or_update_node(make_node("one"))

    def answered(name: str) -> tuple[bool, Any]:
        with state.read() as snapshot:
            found: tuple[bool, Any] = ask(plugin, snapshot.make_pod_info(_pod(name, kind)), snapshot)
        return found

    is_cacheable, before = answered("first")
    _changed(state)
    still, after = answered("second")

    assert still is is_cacheable
    assert not is_cacheable or after == before


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(
    ("plugin", "ask"),
    _plugin_calls(
        [*filter(_is_cacheable_for_spec_class, BEFORE)], [*filter(_is_cacheable_for_spec_class, BEFORE_SCORES)]
    ),
)
def test_a_result_cacheable_by_spec_class_is_equal_for_the_class(plugin: Any, ask: Any, kind: str) -> None:
    """The other pod has another namespace, labels and owner, and ten times the requests."""
    state = Cache()
    state.add_or_update_node(make_node("one"))
    _changed(state)
    snapshot = state.snapshot()
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "set", "uid": "set", "controller": True}
    meta, spec = {"namespace": "team", "ownerReferences": [owner]}, SPECS[kind]
    containers = spec.get("containers", [{"name": "app", "image": "app"}])
    first, other = (
        make_pod(
            name, labels={"app": name}, metadata=more, spec={**spec, "containers": _with_amounts(containers, amount)}
        )
        for name, more, amount in (("web", {}, "1"), ("kin", meta, "10"))
    )
    one, same_class = snapshot.make_pod_info(first), snapshot.make_pod_info(other)
    assert one.signature.spec_class is same_class.signature.spec_class

    is_cacheable, result = ask(plugin, one, snapshot)
    is_cacheable_of_class, result_of_class = ask(plugin, same_class, snapshot)

    assert is_cacheable is is_cacheable_of_class
    assert not is_cacheable or result == result_of_class


def _with_amounts(containers: list[dict[str, Any]], amount: str) -> list[dict[str, Any]]:
    """Return *containers* with their requests, and those for cpu and memory, multiplied by *amount*."""

    def extender_harness(container: dict[str, Any]) -> dict[str, Any]:
        wanted = container.get("resources", {}).get("requests", {})
        return {**container, "resources": {"requests": dict.fromkeys([*wanted, "cpu", "memory"], amount)}}

    return list(map(extender_harness, containers))


def test_all_results_for_a_plain_pod_are_cacheable_except_those_that_depend_on_other_pods() -> None:
    state = Cache()
    state.add_or_update_node(make_node("one"))
    pod_info = state.snapshot().make_pod_info(_pod("pod", "plain"))

    results = {
        plugin.name
        for plugin in PROFILE.pre_filter_plugins
        if plugin not in BEFORE or not cast("CacheablePreFilter", plugin).pre_filter_is_cacheable(pod_info)
    }
    rated = {
        plugin.name
        for plugin in PROFILE.pre_score_plugins
        if plugin not in BEFORE_SCORES or not cast("CacheablePreScore", plugin).pre_score_is_cacheable(pod_info)
    }

    assert results == {"InterPodAffinity"}
    assert {p.name for p in (*BEFORE, *BEFORE_SCORES) if not _is_cacheable_for_spec_class(p)} == {
        "NodeResourcesFit",
        "NodeResourcesBalancedAllocation",
    }
    assert rated == {"InterPodAffinity", "PodTopologySpread"}
