"""The counts of PodTopologySpread, also with pods added and removed. Its results are in tests/cases."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_batch import PodBatch
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.cache.snapshot import Snapshot
from extender.config.feature_gates import FeatureGates
from extender.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from extender.framework.plugin_args import PluginArgs
from extender.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, compile_constraints
from extender.plugins.pod_topology_spread.filter_state import PreFilterState
from extender.plugins.pod_topology_spread.plugin import PodTopologySpread, PodTopologySpreadArgs
from extender.plugins.pod_topology_spread.queueing_hints import find_concerned_pods, is_schedulable_after_pod_change
from tests.build import make_cluster, make_node, make_object, make_pod, make_pod_info

SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = {"app": "web"}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": WEB},
}


def constraint(key: str = "zone", action: str = "DoNotSchedule", skew: int = 1, **more: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": WEB}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, **selector, **more}


def spread(*constraints: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    return {"topologySpreadConstraints": constraints}


@pytest.fixture
def plugin() -> PodTopologySpread:
    return PodTopologySpread(PluginArgs(PodTopologySpreadArgs(), FeatureGates()))


def make_zones(**pod_counts: int) -> Cache:
    """Return one node for each zone, with that number of matching pods."""
    nodes = [make_node(name, labels={"zone": name, "host": name}) for name in pod_counts]
    pods = [
        make_pod(f"{name}-{index}", node=name, labels=WEB)
        for name, count in pod_counts.items()
        for index in range(count)
    ]
    return make_cluster(*nodes, *pods)


def rejections(plugin: PodTopologySpread, pod: PodInfo, snapshot: Snapshot, state: PreFilterState) -> dict[str, str]:
    return {
        name: group.reason.text
        for group in plugin.filter(pod, snapshot.view(), state)
        for name, is_rejected in zip(snapshot.names, group.nodes.tolist(), strict=True)
        if is_rejected
    }


def domain_counts(state: PreFilterState) -> list[tuple[list[int], int, int]]:
    """Return matching pods by domain, their minimum and the number of domains, for each constraint."""
    return [
        (domains.match_nums.tolist(), domains.min_match_num, domains.domain_count)
        for domains in state.domain_match_nums
    ]


def make_assumed_pod(snapshot: Snapshot, node: str, **more: Any) -> tuple[AssignedPodInfo, int]:
    """Return a pod assumed on *node*, and that node's row."""
    row = snapshot.row(node)
    assert row is not None
    return Hypothesis(snapshot).assume_pod(snapshot.make_pod_info(make_pod("new", **more)), node), row


def test_a_pod_added_and_removed_restores_the_counts(plugin: PodTopologySpread) -> None:
    snapshot = make_zones(a=1, b=0).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint())))
    state = plugin.pre_filter(pod, snapshot).state
    assumed_pod, row = make_assumed_pod(snapshot, "b", labels=WEB)
    changed_state = plugin.clone(state)
    plugin.add_pod(pod, assumed_pod, row, snapshot, changed_state)
    assert domain_counts(changed_state) == [([1, 1], 1, 2)]
    assert rejections(plugin, pod, snapshot, changed_state) == {}
    plugin.remove_pod(pod, assumed_pod, row, snapshot, changed_state)
    assert domain_counts(changed_state) == [([1, 0], 0, 2)]
    assert rejections(plugin, pod, snapshot, changed_state) == {"a": SKEWED}
    assert domain_counts(state) == [([1, 0], 0, 2)]


def test_the_state_with_a_pod_added_equals_that_of_a_cluster_with_it(plugin: PodTopologySpread) -> None:
    snapshot = make_zones(a=2, b=1, c=1).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint(), constraint("host", skew=2))))
    hypothesis = Hypothesis(snapshot)
    assumed_pod = hypothesis.assume_pod(snapshot.make_pod_info(make_pod("new", labels=WEB)), "b")
    state = plugin.clone(plugin.pre_filter(pod, snapshot).state)
    plugin.add_pod(pod, assumed_pod, 1, snapshot, state)
    assert domain_counts(state) == domain_counts(plugin.pre_filter(pod, hypothesis.snapshot()).state)
    assert domain_counts(state) == [([2, 2, 1], 1, 3)] * 2


def test_each_node_is_checked_with_its_own_removed_pods_only(plugin: PodTopologySpread) -> None:
    """Without its only pod, zone a has no more pods than zone c; zone b still has one pod."""
    snapshot = make_zones(a=1, b=2, c=0).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint())))
    state = plugin.pre_filter(pod, snapshot).state
    batch = PodBatch([next(iter(snapshot.pods_on(name).values())) for name in "ab"], np.array([0, 1]))

    changed_state = plugin.apply_pod_changes(pod, batch, np.array([-1, -1]), snapshot, state)

    assert rejections(plugin, pod, snapshot, changed_state) == {"b": SKEWED}
    assert rejections(plugin, pod, snapshot, state) == {"a": SKEWED, "b": SKEWED}


@pytest.mark.parametrize(
    ("labels", "namespace"),
    [
        pytest.param({"app": "db"}, "default", id="a pod that the selector does not match"),
        pytest.param(WEB, "other", id="a pod of another namespace"),
    ],
)
def test_a_pod_that_does_not_match_changes_nothing(
    plugin: PodTopologySpread, labels: Mapping[str, str], namespace: str
) -> None:
    snapshot = make_zones(a=1, b=0).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint())))
    state = plugin.pre_filter(pod, snapshot).state
    assumed_pod, row = make_assumed_pod(snapshot, "b", labels=labels, namespace=namespace)
    plugin.add_pod(pod, assumed_pod, row, snapshot, state)
    assert domain_counts(state) == [([1, 0], 0, 2)]


def test_a_pod_on_an_ineligible_node_changes_nothing(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=1, b=1)
    cache.add_or_update_node(make_node("tainted", labels={"zone": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint(nodeTaintsPolicy="Honor"))))
    state = plugin.pre_filter(pod, snapshot).state
    assumed_pod, row = make_assumed_pod(snapshot, "tainted", labels=WEB)
    plugin.add_pod(pod, assumed_pod, row, snapshot, state)
    assert domain_counts(state) == [([1, 1], 1, 2)]


def test_removing_a_terminating_pod_subtracts_it_though_it_was_not_counted(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=1, b=1)
    terminating = make_pod("dying", node="a", labels=WEB, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    cache.add_or_update_pod(terminating)
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint())))
    state = plugin.pre_filter(pod, snapshot).state
    assert domain_counts(state) == [([1, 1], 1, 2)]
    plugin.remove_pod(pod, cache.assigned_pods["uid-default-dying"], 0, snapshot, state)
    assert domain_counts(state) == [([0, 1], 0, 2)]


def test_an_empty_selector_counts_only_added_pods(plugin: PodTopologySpread) -> None:
    snapshot = make_zones(a=3, b=0).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint(labelSelector={}))))
    state = plugin.pre_filter(pod, snapshot).state
    assert rejections(plugin, pod, snapshot, state) == {}
    assumed_pod, row = make_assumed_pod(snapshot, "b", labels={"app": "db"})
    plugin.add_pod(pod, assumed_pod, row, snapshot, state)
    assert rejections(plugin, pod, snapshot, state) == {"b": SKEWED}


@pytest.mark.parametrize(
    ("pod_counts", "changes", "min_match_num"),
    [
        pytest.param({"a": 0, "b": 1, "c": 4}, ["+a"], 1, id="the minimum rises to the second"),
        pytest.param({"a": 0, "b": 1, "c": 4}, ["+a", "+a"], 1, id="the second becomes the minimum"),
        pytest.param({"a": 2, "b": 3, "c": 4}, ["-c", "-c", "-c"], 1, id="another domain becomes the minimum"),
        pytest.param({"a": 0, "b": 1, "c": 1}, ["+a", "+a", "+b", "+b"], 2, id="a third domain is not tracked"),
        pytest.param({"a": 1}, ["+a", "-a", "-a"], 0, id="the only domain is the minimum"),
    ],
)
def test_the_minimum_is_tracked_with_two_critical_paths(
    plugin: PodTopologySpread, pod_counts: Mapping[str, int], changes: Sequence[str], min_match_num: int
) -> None:
    snapshot = make_zones(**pod_counts).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint())))
    state = plugin.pre_filter(pod, snapshot).state
    for change in changes:
        assumed_pod, row = make_assumed_pod(snapshot, change[1], labels=WEB)
        (plugin.add_pod if change[0] == "+" else plugin.remove_pod)(pod, assumed_pod, row, snapshot, state)
    assert state.domain_match_nums[0].min_match_num == min_match_num


def test_without_domains_every_labelled_node_passes(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=3)
    cache.add_or_update_node(make_node("bare"))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec={**spread(constraint()), "nodeSelector": {"disk": "ssd"}}))
    state = plugin.pre_filter(pod, snapshot).state
    assert (state.domain_match_nums[0].domain_count, state.domain_match_nums[0].min_match_num) == (0, 2147483647)
    assert rejections(plugin, pod, snapshot, state) == {"bare": MISSING_LABEL}


def test_a_node_that_is_relabelled_counts_in_its_new_domain(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=1, b=1)
    spec = spread(constraint(nodeTaintsPolicy="Honor"))
    pod = cache.snapshot().make_pod_info(make_pod(labels=WEB, spec=spec))
    assert plugin.pre_filter(pod, cache.snapshot()).state.domain_match_nums[0].domain_count == 2
    cache.add_or_update_node(make_node("b", labels={"zone": "a", "host": "b"}))
    snapshot = cache.snapshot()
    state = plugin.pre_filter(pod, snapshot).state
    assert (state.domain_match_nums[0].domain_count, state.domain_match_nums[0].min_match_num) == (1, 2)


@pytest.mark.parametrize(("node", "hint"), [("", QueueingHint.QUEUE), ("a", QueueingHint.SKIP)])
def test_changed_tolerations_requeue_only_a_pod_without_a_node(node: str, hint: QueueingHint) -> None:
    """A pod on a node waits for its resize, which needs no spread.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go,
    PodTopologySpread.isSchedulableAfterTargetPodChange (1.37).
    """
    spec = spread(constraint(nodeTaintsPolicy="Honor"))
    old = make_pod(node=node, spec={**spec, "tolerations": [{"operator": "Exists"}]})
    new = make_pod(node=node, spec=spec)
    resource = EventResource.ASSIGNED_POD if node else EventResource.TARGET_POD
    event = ClusterEvent(resource, ActionType.UPDATE_POD_TOLERATION, old, new)
    info = make_cluster().snapshot().make_pod_info(new)
    gates = FeatureGates({})
    constraints = compile_constraints(new.spec.topology_spread_constraints, DO_NOT_SCHEDULE, "default", {}, gates)

    assert is_schedulable_after_pod_change(info, event, constraints) is hint


def test_a_changed_pod_concerns_the_waiting_pods_of_its_namespace() -> None:
    concerns = find_concerned_pods(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, make_pod("gone"), None))
    waiting_pods = make_pod("waits"), make_pod("waits", namespace="other")
    assert [concerns(make_pod_info(pod)) for pod in waiting_pods] == [True, False]


@pytest.mark.parametrize(("is_changed", "hint"), [(False, QueueingHint.SKIP), (True, QueueingHint.QUEUE)])
def test_every_event_requeues_a_changed_pod_with_default_constraints(is_changed: bool, hint: QueueingHint) -> None:
    """kube-scheduler computes them for each event; here, the next attempt of a changed pod does."""
    defaults = make_pod(spec=spread({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": DO_NOT_SCHEDULE}))
    options = PodTopologySpreadArgs(defaults.spec.topology_spread_constraints, "List")
    plugin = PodTopologySpread(PluginArgs(options, FeatureGates()))
    snapshot = make_cluster(make_object(SERVICE)).snapshot()
    plugin.pre_filter(snapshot.make_pod_info(make_pod("waiting", labels=WEB)), snapshot)
    waiting = make_pod("waiting", labels={**WEB, "new": "label"} if is_changed else WEB)
    (node, other), info = (make_node("a"), make_pod("other", node="a")), snapshot.make_pod_info(waiting)
    events = (
        ClusterEvent(EventResource.NODE, ActionType.ADD, None, node),
        ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, other, None),
    )

    assert [ask_hint(plugin, info, event) for event in events] == [hint, hint]


def ask_hint(plugin: PodTopologySpread, pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    (registration,) = (entry for entry in plugin.events_to_register() if entry.matches(event))
    assert registration.hint is not None
    return registration.hint(pod, event)


def test_raw_scores_are_rounded_sums_of_weighted_pods(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=3, b=1)
    cache.add_or_update_node(make_node("bare", labels={"zone": "a"}))
    snapshot = cache.snapshot()
    constraints = [constraint(action="ScheduleAnyway", skew=2), constraint("host", "ScheduleAnyway", skew=3)]
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(*constraints)))
    view = snapshot.view()
    state = plugin.pre_score(pod, view).state
    raw = plugin.score(pod, view, state)
    # two domains each, so the weight of a pod is ln 4 = 1.386; a: 6 * 1.386 + 1 + 2, b: 2 * 1.386 + 1 + 2
    assert raw.tolist() == [11, 6, 0]
    assert plugin.normalize_score(pod, raw, view, state).tolist() == [54, 100, 0]


def test_the_host_name_is_scored_by_the_node_alone(plugin: PodTopologySpread) -> None:
    key = "kubernetes.io/hostname"
    nodes = [make_node(name, labels={key: "same"}) for name in ("a", "b")]
    snapshot = make_cluster(*nodes, make_pod("x", node="a", labels=WEB), make_pod("y", node="a", labels=WEB)).snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint(key, "ScheduleAnyway"))))
    view = snapshot.view()
    state = plugin.pre_score(pod, view).state
    assert plugin.score(pod, view, state).tolist() == [3, 0]  # 2 ln 4 = 2.77


def test_weights_use_domains_of_feasible_nodes_but_counts_use_all_nodes(plugin: PodTopologySpread) -> None:
    cache = make_zones(a=1, b=2, c=0)
    cache.add_or_update_node(make_node("other", labels={"zone": "a"}))
    cache.add_or_update_pod(make_pod("more", node="other", labels=WEB))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB, spec=spread(constraint(action="ScheduleAnyway"))))
    view = snapshot.view(np.array([0]))
    state = plugin.pre_score(pod, view).state
    assert plugin.score(pod, view, state).tolist() == [2]  # 2 ln 3 = 2.20


def test_the_empty_zone_and_no_zone_are_one_domain_under_system_defaults(plugin: PodTopologySpread) -> None:
    key = "topology.kubernetes.io/zone"
    cache = make_cluster(
        make_node("empty", labels={key: ""}),
        make_node("none"),
        make_pod("x", node="none", labels=WEB),
        make_object(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": WEB},
            }
        ),
    )
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod(labels=WEB))
    view = snapshot.view()
    state = plugin.pre_score(pod, view).state
    assert plugin.score(pod, view, state).tolist() == [5, 0]  # ln 3 + 4 = 5.10


def test_an_invalid_schedule_anyway_constraint_is_an_error(plugin: PodTopologySpread) -> None:
    snapshot = make_zones(a=0).snapshot()
    broken = constraint(action="ScheduleAnyway", labelSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]})
    result = plugin.pre_score(snapshot.make_pod_info(make_pod(spec=spread(broken))), snapshot.view())
    assert result.status is not None
    assert result.status.reasons[0].startswith(
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
    )
