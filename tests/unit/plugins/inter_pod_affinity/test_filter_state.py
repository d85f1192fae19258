"""The PreFilter state of InterPodAffinity with pods added and removed. Its results are in tests/cases."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.framework.events import ActionType, EventResource
from extender.framework.plugin_args import PluginArgs
from extender.plugins.inter_pod_affinity.filter_state import PreFilterState
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs
from tests.build import make_cluster, make_node, make_pod

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def make_affinity_spec(affinity_type: str, key: str, app: str) -> Mapping[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {affinity_type: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


AFFINITY_TO_WEB = make_affinity_spec("podAffinity", "zone", "web")
ANTI_AFFINITY_TO_WEB = make_affinity_spec("podAntiAffinity", "zone", "web")
BOTH = {
    "affinity": {
        **make_affinity_spec("podAffinity", "host", "db")["affinity"],
        **make_affinity_spec("podAntiAffinity", "zone", "web")["affinity"],
    }
}


@pytest.fixture
def plugin() -> InterPodAffinity:
    return InterPodAffinity(PluginArgs(InterPodAffinityArgs(), FeatureGates()))


@pytest.fixture
def cache() -> Cache:
    return make_cluster(
        make_node("one", labels={"zone": "east", "host": "one"}),
        make_node("two", labels={"zone": "east", "host": "two"}),
        make_node("three", labels={"zone": "west", "host": "three"}),
        make_pod("db", node="one", labels={"app": "db"}),
        make_pod("web", node="three", labels={"app": "web"}),
    )


def rejections(plugin: InterPodAffinity, pod: PodInfo, snapshot: Snapshot, state: PreFilterState) -> dict[str, str]:
    return {
        name: group.reason.text
        for group in plugin.filter(pod, snapshot.view(), state)
        for name, is_rejected in zip(snapshot.names, group.nodes.tolist(), strict=True)
        if is_rejected
    }


def count_by_node(state: PreFilterState, snapshot: Snapshot) -> list[dict[str, list[int]]]:
    """Return the counts of the nodes' domains for each topology key with a count other than zero."""
    counts_by_key = [
        {key: counts.get_counts_by_node(snapshot.view(), key).tolist() for key in counts.topology_keys}
        for counts in state.all_counts
    ]
    return [{key: counts for key, counts in by_key.items() if any(counts)} for by_key in counts_by_key]


def make_assumed_pod(snapshot: Snapshot, name: str, node: str, **more: Any) -> tuple[AssignedPodInfo, int]:
    """Return a pod assumed on *node*, and that node's row."""
    row = snapshot.row(node)
    assert row is not None
    return Hypothesis(snapshot).assume_pod(snapshot.make_pod_info(make_pod(name, **more)), node), row


class AddedPodCase(NamedTuple):
    """The rejections of a pod with *labels* and *spec* before and after *added_pod* is added to node two."""

    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    added_pod: Mapping[str, Any]
    before: Mapping[str, str]
    after: Mapping[str, str]


ADDED_POD_CASES = {
    "a pod that matches the affinity is added": AddedPodCase(
        {},
        AFFINITY_TO_WEB,
        added_pod={"labels": {"app": "web"}},
        before={"one": AFFINITY, "two": AFFINITY},
        after={},
    ),
    "a pod that matches the anti-affinity is added": AddedPodCase(
        {},
        ANTI_AFFINITY_TO_WEB,
        added_pod={"labels": {"app": "web"}},
        before={"three": ANTI_AFFINITY},
        after={"one": ANTI_AFFINITY, "two": ANTI_AFFINITY, "three": ANTI_AFFINITY},
    ),
    "a pod with matching anti-affinity is added": AddedPodCase(
        {"app": "web"},
        ANTI_AFFINITY_TO_WEB,
        added_pod={"labels": {"app": "x"}, "spec": ANTI_AFFINITY_TO_WEB},
        before={"three": ANTI_AFFINITY},
        after={"one": EXISTING_ANTI_AFFINITY, "two": EXISTING_ANTI_AFFINITY, "three": ANTI_AFFINITY},
    ),
    "a second pod that matches the affinity is added": AddedPodCase(
        {},
        BOTH,
        added_pod={"labels": {"app": "db"}},
        before={"two": AFFINITY, "three": AFFINITY},
        after={"three": AFFINITY},
    ),
}


@pytest.mark.parametrize("case", ADDED_POD_CASES.values(), ids=ADDED_POD_CASES.keys())
def test_adding_a_pod_changes_the_rejections_and_removing_it_reverts_them(
    plugin: InterPodAffinity, cache: Cache, case: AddedPodCase
) -> None:
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=case.labels, spec=case.spec))
    state = plugin.pre_filter(pod, snapshot).state
    assumed_pod, row = make_assumed_pod(snapshot, "new", "two", **case.added_pod)
    changed_state = plugin.clone(state)
    plugin.add_pod(pod, assumed_pod, row, snapshot, changed_state)
    assert rejections(plugin, pod, snapshot, changed_state) == case.after
    assert rejections(plugin, pod, snapshot, state) == case.before
    plugin.remove_pod(pod, assumed_pod, row, snapshot, changed_state)
    assert count_by_node(changed_state, snapshot) == count_by_node(state, snapshot)
    assert rejections(plugin, pod, snapshot, changed_state) == case.before


@pytest.mark.parametrize("app", ["web", "db"])
def test_the_state_with_a_pod_added_equals_that_of_a_cluster_with_it(
    plugin: InterPodAffinity, cache: Cache, app: str
) -> None:
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels={"app": "web"}, spec=BOTH))
    added_pod = make_pod("new", labels={"app": app}, spec=ANTI_AFFINITY_TO_WEB)
    hypothesis = Hypothesis(snapshot)
    assumed_pod = hypothesis.assume_pod(snapshot.make_pod_info(added_pod), "two")
    state = plugin.clone(plugin.pre_filter(pod, snapshot).state)
    plugin.add_pod(pod, assumed_pod, 1, snapshot, state)
    expected = count_by_node(plugin.pre_filter(pod, hypothesis.snapshot()).state, snapshot)
    assert count_by_node(state, snapshot) == expected


def test_a_pod_is_the_first_of_its_group_again_after_its_only_match_is_removed(plugin: InterPodAffinity) -> None:
    cache = make_cluster(
        make_node("one", labels={"zone": "east"}),
        make_node("two", labels={"zone": "west"}),
        make_pod("web", node="one", labels={"app": "web"}),
    )
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels={"app": "web"}, spec=AFFINITY_TO_WEB))
    state = plugin.clone(plugin.pre_filter(pod, snapshot).state)
    assert rejections(plugin, pod, snapshot, state) == {"two": AFFINITY}
    plugin.remove_pod(pod, cache.assigned_pods["uid-default-web"], 0, snapshot, state)
    assert rejections(plugin, pod, snapshot, state) == {}


def test_a_change_of_one_clone_does_not_affect_the_other(plugin: InterPodAffinity, cache: Cache) -> None:
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(spec=ANTI_AFFINITY_TO_WEB))
    first = plugin.pre_filter(pod, snapshot).state
    assumed_pod, row = make_assumed_pod(snapshot, "new", "one", labels={"app": "web"})
    plugin.add_pod(pod, assumed_pod, row, snapshot, first)
    second = plugin.clone(first)
    plugin.remove_pod(pod, assumed_pod, row, snapshot, first)
    assert rejections(plugin, pod, snapshot, first) == {"three": ANTI_AFFINITY}
    assert rejections(plugin, pod, snapshot, second) == {
        "one": ANTI_AFFINITY,
        "two": ANTI_AFFINITY,
        "three": ANTI_AFFINITY,
    }
    assert rejections(plugin, pod, snapshot, plugin.pre_filter(pod, snapshot).state) == {"three": ANTI_AFFINITY}


def test_a_pod_added_to_a_node_without_the_key_is_not_counted(plugin: InterPodAffinity, cache: Cache) -> None:
    cache.add_or_update_node(make_node("bare"))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(spec=ANTI_AFFINITY_TO_WEB))
    state = plugin.pre_filter(pod, snapshot).state
    before = count_by_node(state, snapshot)
    assumed_pod, row = make_assumed_pod(snapshot, "new", "bare", labels={"app": "web"})
    plugin.add_pod(pod, assumed_pod, row, snapshot, state)
    assert count_by_node(state, snapshot) == before


def test_without_queueing_hints_node_taint_updates_are_registered() -> None:
    gates = FeatureGates({"SchedulerQueueingHints": False}, RELEASE_1_36)
    plugin = InterPodAffinity(PluginArgs(InterPodAffinityArgs(), gates))
    (nodes,) = [entry for entry in plugin.events_to_register() if entry.resource is EventResource.NODE]
    assert nodes.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT


def test_each_node_is_checked_with_its_own_removed_pods_only(plugin: InterPodAffinity, cache: Cache) -> None:
    """Zone east has a matching pod on each of its two nodes, and each is removed for its own node only."""
    cache.add_or_update_pod(make_pod("web-2", node="one", labels={"app": "web"}))
    cache.add_or_update_pod(make_pod("web-3", node="two", labels={"app": "web"}))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(spec=ANTI_AFFINITY_TO_WEB))
    state = plugin.pre_filter(pod, snapshot).state
    pods = [
        next(each for each in snapshot.pods_on(name).values() if each.labels["app"] == "web")
        for name in ("one", "two", "three")
    ]
    batch = PodBatch(pods, np.array([0, 1, 2]))

    changed_state = plugin.apply_pod_changes(pod, batch, np.array([-1, -1, -1]), snapshot, state)

    assert rejections(plugin, pod, snapshot, changed_state) == {"one": ANTI_AFFINITY, "two": ANTI_AFFINITY}
    assert len(rejections(plugin, pod, snapshot, state)) == 3
