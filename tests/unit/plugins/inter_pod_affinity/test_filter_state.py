"""The PreFilter state of InterPodAffinity with pods added and removed. Its results are in tests/cases."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, EventResource
from extender.framework.plugin_args import PluginArgs
from extender.plugins.inter_pod_affinity.filter_state import PreFilterState
from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs
from tests.build import make_cluster, make_node, make_pod

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def terms(side: str, key: str, app: str) -> Mapping[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


AFFINITY_TO_WEB = terms("podAffinity", "zone", "web")
ANTI_AFFINITY_TO_WEB = terms("podAntiAffinity", "zone", "web")
BOTH = {
    "affinity": {
        **terms("podAffinity", "host", "db")["affinity"],
        **terms("podAntiAffinity", "zone", "web")["affinity"],
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


def count_entries(state: PreFilterState) -> list[dict[tuple[str, int], int]]:
    return [counts.get_nonzero_counts() for counts in state.all_counts]


def make_assumed_pod(snapshot: Snapshot, name: str, node: str, **more: Any) -> tuple[AssignedPodInfo, int]:
    """Return a pod assumed on *node*, and that node's row."""
    row = snapshot.row(node)
    assert row is not None
    return Hypothesis(snapshot).assume_pod(snapshot.make_pod_info(make_pod(name, **more)), node), row


class AddedPodCase(NamedTuple):
    """The rejections of a pod with *labels* and *spec* before and after *new* is added to node two."""

    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    new: Mapping[str, Any]
    before: Mapping[str, str]
    after: Mapping[str, str]


ADDED_POD_CASES = {
    "a pod that matches the affinity is added": AddedPodCase(
        {},
        AFFINITY_TO_WEB,
        new={"labels": {"app": "web"}},
        before={"one": AFFINITY, "two": AFFINITY},
        after={},
    ),
    "a pod that matches the anti-affinity is added": AddedPodCase(
        {},
        ANTI_AFFINITY_TO_WEB,
        new={"labels": {"app": "web"}},
        before={"three": ANTI_AFFINITY},
        after={"one": ANTI_AFFINITY, "two": ANTI_AFFINITY, "three": ANTI_AFFINITY},
    ),
    "a pod with matching anti-affinity is added": AddedPodCase(
        {"app": "web"},
        ANTI_AFFINITY_TO_WEB,
        new={"labels": {"app": "x"}, "spec": ANTI_AFFINITY_TO_WEB},
        before={"three": ANTI_AFFINITY},
        after={"one": EXISTING_ANTI_AFFINITY, "two": EXISTING_ANTI_AFFINITY, "three": ANTI_AFFINITY},
    ),
    "a second pod that matches the affinity is added": AddedPodCase(
        {},
        BOTH,
        new={"labels": {"app": "db"}},
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
    other, row = make_assumed_pod(snapshot, "new", "two", **case.new)
    changed_state = plugin.clone(state)
    plugin.add_pod(pod, other, row, snapshot, changed_state)
    assert rejections(plugin, pod, snapshot, changed_state) == case.after
    assert rejections(plugin, pod, snapshot, state) == case.before
    plugin.remove_pod(pod, other, row, snapshot, changed_state)
    assert count_entries(changed_state) == count_entries(state)
    assert rejections(plugin, pod, snapshot, changed_state) == case.before


@pytest.mark.parametrize("app", ["web", "db"])
def test_the_state_with_a_pod_added_equals_that_of_a_cluster_with_it(
    plugin: InterPodAffinity, cache: Cache, app: str
) -> None:
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels={"app": "web"}, spec=BOTH))
    added_pod = make_pod("new", labels={"app": app}, spec=ANTI_AFFINITY_TO_WEB)
    hypothesis = Hypothesis(snapshot)
    other = hypothesis.assume_pod(snapshot.make_pod_info(added_pod), "two")
    state = plugin.clone(plugin.pre_filter(pod, snapshot).state)
    plugin.add_pod(pod, other, 1, snapshot, state)
    assert count_entries(state) == count_entries(plugin.pre_filter(pod, hypothesis.snapshot()).state)


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
    other, row = make_assumed_pod(snapshot, "new", "one", labels={"app": "web"})
    plugin.add_pod(pod, other, row, snapshot, first)
    second = plugin.clone(first)
    plugin.remove_pod(pod, other, row, snapshot, first)
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
    before = count_entries(state)
    other, row = make_assumed_pod(snapshot, "new", "bare", labels={"app": "web"})
    plugin.add_pod(pod, other, row, snapshot, state)
    assert count_entries(state) == before


def test_without_queueing_hints_node_taint_updates_are_registered() -> None:
    gates = FeatureGates({"SchedulerQueueingHints": False})
    plugin = InterPodAffinity(PluginArgs(InterPodAffinityArgs(), gates))
    (nodes,) = [entry for entry in plugin.events_to_register() if entry.resource is EventResource.NODE]
    assert nodes.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
