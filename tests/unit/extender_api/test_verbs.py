"""The verbs filter and prioritize with fake plugins."""

import json
from typing import Any, ClassVar

import pytest

from extender.api.defaulting import set_defaults
from extender.api.extender_v1 import FilterResult
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.failed_nodes import UNKNOWN_NODE
from extender.extender_api.node_names import NodeNames
from extender.extender_api.payloads import ExtenderArgs, PreemptionArgs, decode_args
from extender.extender_api.request_limits import RequestError
from extender.extender_api.score_scaling import ScoreRange
from extender.extender_api.verbs import NO_NODES_MESSAGE, PodPreparer, Verbs
from extender.framework.plugin_args import PluginArgs
from extender.framework.profiles import Profile
from extender.framework.result_cache import ResultCache
from extender.framework.status import Code, Reason, Status
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs
from tests.build import make_cluster, make_node, make_pod
from tests.coroutines import run_now
from tests.fake_plugins import (
    AcceptingFilter,
    CountingFilter,
    FixedScore,
    OccupiedNodeFilter,
    RaisingPlugin,
    RejectingFilter,
    RejectingPreFilter,
    make_profile,
)

NODES = [make_node(name) for name in ("n1", "n2", "n3", "n4")]
WEB = make_pod("web")
LIMITS = {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]}


def make_verbs(*plugins: Any, cluster: Cache | None = None, others: tuple[Profile, ...] = (), **more: Any) -> Verbs:
    profile = make_profile(*plugins)
    profiles = {item.scheduler_name: item for item in (profile, *others)}
    cache = make_cluster(*NODES) if cluster is None else cluster
    return Verbs(
        cache, profiles, profile, PluginRuntime(), PluginRuntime(result_cache=ResultCache(enabled=False)), **more
    )


def args_by_name(*names: str) -> ExtenderArgs:
    return ExtenderArgs(WEB, names=NodeNames(list(names)))


def args_by_node(*nodes: dict[str, Any]) -> ExtenderArgs:
    return run_now(decode_args(json.dumps({"Pod": {"metadata": {"name": "web"}}, "Nodes": {"items": nodes}}).encode()))


def scores(tested_verbs: Verbs, args: ExtenderArgs) -> list[tuple[str, int]]:
    return [(item.host, item.score) for item in run_now(tested_verbs.prioritize(args))]


def test_only_requested_nodes_are_returned() -> None:
    plugin = RejectingFilter({Reason("no"): ["n1", "n2"]})
    assert run_now(make_verbs(plugin).filter(args_by_name("n2", "n4"))) == FilterResult(
        node_names=["n4"], failed_nodes={"n2": "no"}
    )


def test_names_are_returned_in_the_order_of_the_request() -> None:
    assert run_now(make_verbs(AcceptingFilter()).filter(args_by_name("n3", "n1", "n2"))).node_names == [
        "n3",
        "n1",
        "n2",
    ]


def test_nodes_that_preemption_cannot_help_are_listed_separately() -> None:
    plugin = RejectingFilter({Reason("no room"): ["n1"], Reason("wrong zone", Code.UNRESOLVABLE): ["n2"]})
    assert run_now(make_verbs(plugin).filter(args_by_name("n1", "n2", "n3"))) == FilterResult(
        node_names=["n3"], failed_nodes={"n1": "no room"}, failed_and_unresolvable_nodes={"n2": "wrong zone"}
    )


def test_reasons_of_a_plugin_are_joined_in_its_order_and_one_unresolvable_reason_makes_the_node_unresolvable() -> None:
    plugin = RejectingFilter(
        {Reason("b"): ["n1", "n2", "n3"], Reason("a"): ["n1", "n2"], Reason("z", Code.UNRESOLVABLE): ["n2"]}
    )
    result = run_now(make_verbs(plugin).filter(args_by_name("n1", "n2", "n3")))
    assert result.failed_nodes == {"n1": "b, a", "n3": "b"}
    assert result.failed_and_unresolvable_nodes == {"n2": "b, a, z"}


def test_a_node_has_the_reason_of_the_first_plugin_that_rejects_it() -> None:
    class RefusesLater(RejectingFilter):
        name: ClassVar[str] = "RefusesLater"

    first = RejectingFilter({Reason("first"): ["n1"]})
    later = RefusesLater({Reason("second", Code.UNRESOLVABLE): ["n1", "n2"]})
    result = run_now(make_verbs(first, later).filter(args_by_name("n1", "n2")))
    assert result.failed_nodes == {"n1": "first"}
    assert result.failed_and_unresolvable_nodes == {"n2": "second"}


def test_a_rejection_without_a_reason_is_a_rejection() -> None:
    result = run_now(make_verbs(RejectingPreFilter(Status(Code.UNSCHEDULABLE))).filter(args_by_name("n1")))
    assert result == FilterResult(node_names=[], failed_nodes={"n1": ""})


def test_an_unknown_name_is_a_failed_node() -> None:
    assert run_now(make_verbs(AcceptingFilter()).filter(args_by_name("n1", "new", ""))) == FilterResult(
        node_names=["n1"], failed_nodes={"new": UNKNOWN_NODE, "": UNKNOWN_NODE}
    )


def test_without_any_node_every_name_is_unknown() -> None:
    result = run_now(make_verbs(AcceptingFilter(), cluster=Cache()).filter(args_by_name("n1")))
    assert result == FilterResult(node_names=[], failed_nodes={"n1": UNKNOWN_NODE})


@pytest.mark.parametrize(
    ("code", "final"), [(Code.UNSCHEDULABLE, False), (Code.UNRESOLVABLE, True)], ids=["for now", "for good"]
)
def test_a_pod_rejected_by_pre_filter_fails_on_every_requested_node(code: Code, final: bool) -> None:
    verbs = make_verbs(RejectingPreFilter(Status(code, ("not this one", "never"))))
    result = run_now(verbs.filter(args_by_name("n2", "n1")))
    caught = {"n2": "not this one, never", "n1": "not this one, never"}
    parts = (result.failed_nodes, result.failed_and_unresolvable_nodes)
    assert result.node_names == []
    assert parts == (({}, caught) if final else (caught, {}))


def test_nodes_excluded_by_pre_filter_are_unresolvable() -> None:
    result = run_now(
        make_verbs(RejectingPreFilter(node_names=frozenset({"n1", "gone"})), AcceptingFilter()).filter(
            args_by_name("n1", "n2")
        )
    )
    assert result.node_names == ["n1"]
    assert result.failed_and_unresolvable_nodes == {"n2": "node(s) didn't satisfy plugin(s) [RejectingPreFilter]"}


def test_a_bug_in_a_plugin_is_an_error_that_names_it() -> None:
    result = run_now(make_verbs(RaisingPlugin()).filter(args_by_name("n1")))
    assert result == FilterResult(error='running "RaisingPlugin" filter plugin: ZeroDivisionError: a bug')


def test_a_request_without_nodes_is_an_error() -> None:
    for verb in (make_verbs(AcceptingFilter()).filter, make_verbs(AcceptingFilter()).prioritize):
        with pytest.raises(RequestError, match=NO_NODES_MESSAGE) as caught:
            run_now(verb(ExtenderArgs(WEB)))
        assert caught.value.status == 400


def test_the_profile_has_the_pod_s_scheduler_name_or_is_the_default() -> None:
    batch, counts = (
        make_profile(RejectingFilter({Reason("not for batch"): None}), scheduler_name="batch"),
        CountingFilter(),
    )
    tested_verbs = make_verbs(counts, others=(batch,))
    for_batch = make_pod("job", spec={"schedulerName": "batch"})
    for_nobody = make_pod("odd", spec={"schedulerName": "someone-else"})
    assert run_now(tested_verbs.filter(ExtenderArgs(for_batch, names=NodeNames(["n1"])))).failed_nodes == {
        "n1": "not for batch"
    }
    assert run_now(tested_verbs.filter(ExtenderArgs(for_nobody, names=NodeNames(["n1"])))).node_names == ["n1"]
    assert counts.calls == [("default/odd", 4)]


def test_whole_nodes_are_returned_as_whole_nodes() -> None:
    args = args_by_node({"metadata": {"name": "n1"}, "extra": 1}, {"metadata": {"name": "n2"}})
    result = run_now(make_verbs(RejectingFilter({Reason("no"): ["n2"]})).filter(args))
    assert result.node_names is None
    assert result.nodes is not None
    assert [bytes(item) for item in result.nodes["items"]] == [b'{"metadata": {"name": "n1"}, "extra": 1}']
    assert result.failed_nodes == {"n2": "no"}


def test_whole_nodes_are_filtered_with_the_cache_s_pods_and_the_cache_does_not_change() -> None:
    cluster = make_cluster(*NODES, make_pod("there", node="n1"), make_pod("early", node="new"))
    tested_verbs = make_verbs(OccupiedNodeFilter(), cluster=cluster)
    sent = [{"metadata": {"name": name, "labels": {"sent": "yes"}}} for name in ("n1", "n2", "new")]
    assert run_now(tested_verbs.filter(args_by_node(*sent))).failed_nodes == {"n1": "has pods", "new": "has pods"}
    assert list(cluster.snapshot().names) == ["n1", "n2", "n3", "n4"]
    assert cluster.snapshot().nodes[0].metadata.labels == {}
    assert run_now(tested_verbs.filter(args_by_name("n1", "n2"))).failed_nodes == {"n1": "has pods"}


def test_whole_nodes_are_filtered_with_an_empty_cache() -> None:
    result = run_now(make_verbs(AcceptingFilter(), cluster=Cache()).filter(args_by_node({"metadata": {"name": "n9"}})))
    assert result.nodes is not None
    assert len(result.nodes["items"]) == 1


def test_a_node_with_an_invalid_quantity_is_rejected_with_its_field() -> None:
    invalid_node = {"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "lots"}}}
    with pytest.raises(RequestError, match=r'Nodes\.items\[1\]\.status\.allocatable: quantity "lots"') as caught:
        run_now(make_verbs(AcceptingFilter()).filter(args_by_node({"metadata": {"name": "n1"}}, invalid_node)))
    assert caught.value.status == 400


def test_an_invalid_pod_is_rejected_with_its_field() -> None:
    args = ExtenderArgs(make_pod("web", requests={"cpu": "lots"}), names=NodeNames(["n1"]))
    with pytest.raises(RequestError, match=r'Pod\.spec.*"lots"'):
        run_now(make_verbs(AcceptingFilter()).filter(args))


PREPARED_PODS = [
    pytest.param(make_pod("b", spec=LIMITS), True, id="another name"),
    pytest.param(make_pod("b", namespace="", spec=LIMITS), False, id="no namespace"),
    pytest.param(make_pod("b", requests={"cpu": "2"}), False, id="another spec"),
    pytest.param(make_pod("b", spec=LIMITS, status={"phase": "Running"}), False, id="another status"),
]


@pytest.mark.parametrize(("pod", "is_alike"), PREPARED_PODS)
def test_a_pod_that_differs_from_the_last_one_only_in_its_metadata_is_not_validated_again(
    pod: Pod, is_alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated: list[Pod] = []

    def find_errors(pod: Pod) -> list[tuple[str, str]]:
        validated.append(pod)
        return []

    monkeypatch.setattr("extender.extender_api.verbs.validate_object", find_errors)
    pod_preparer = PodPreparer()
    pod_preparer.prepare(make_pod("a", spec=LIMITS))
    assert pod_preparer.prepare(pod) == set_defaults(pod)
    assert len(validated) == (1 if is_alike else 2)


@pytest.mark.parametrize("uid", ["", "2"])
def test_the_labels_of_a_pod_without_uid_are_not_merged_into_the_affinity_of_another(uid: str) -> None:
    term = {"labelSelector": {}, "matchLabelKeys": ["version"], "topologyKey": "zone"}
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    first = make_pod("a", labels={"version": "1"}, metadata={"uid": ""}, spec=spec)
    second = make_pod("b", labels={"version": "2"}, metadata={"uid": uid}, spec=spec)
    pod_preparer = PodPreparer()
    pod_preparer.prepare(first)
    assert pod_preparer.prepare(second) == set_defaults(second)


def test_an_amount_beyond_64_bits_is_only_a_large_amount() -> None:
    huge = ExtenderArgs(make_pod("huge", requests={"cpu": 2**70}), names=NodeNames(["n1"]))
    assert run_now(make_verbs(AcceptingFilter()).filter(huge)).node_names == ["n1"]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
def test_resources_that_only_pods_request_are_not_retained(verb: str) -> None:
    """A pod may request a resource that no node has, as devices provide it; other pods cannot prevent that."""
    tested_verbs = make_verbs(NodeResourcesFit(PluginArgs(NodeResourcesFitArgs(), FeatureGates())))
    for number in range(300):
        pod = make_pod("web", requests={f"example.com/r{number}": "1"})
        args = PreemptionArgs(pod, {}) if verb == "preempt" else ExtenderArgs(pod, names=NodeNames(["n1"]))
        run_now(getattr(tested_verbs, verb)(args))
    assert len(tested_verbs.cache.snapshot().symbols.resources) == 3


def test_the_best_node_comes_first_and_ties_keep_the_order_of_the_request() -> None:
    tested_verbs = make_verbs(FixedScore({"n1": 20, "n2": 90, "n3": 20, "n4": 55}))
    assert scores(tested_verbs, args_by_name("n3", "n4", "n1", "n2")) == [("n2", 10), ("n4", 5), ("n3", 0), ("n1", 0)]


def test_infeasible_and_unknown_nodes_have_zero_and_all_others_more() -> None:
    tested_verbs = make_verbs(FixedScore({"n1": 20, "n2": 90}), RejectingFilter({Reason("no"): ["n2"]}))
    assert scores(tested_verbs, args_by_name("n2", "new", "n1", "n3")) == [("n1", 10), ("n3", 1), ("n2", 0), ("new", 0)]


def test_the_raw_mode_returns_totals() -> None:
    tested_verbs = make_verbs(
        FixedScore({"n1": 20, "n2": 90}), RejectingFilter({Reason("no"): ["n3"]}), score_range=ScoreRange.RAW
    )
    assert scores(tested_verbs, args_by_name("n1", "n2", "n3")) == [("n2", 90), ("n1", 20), ("n3", 0)]


def make_relative_verbs(*plugins: Any) -> Verbs:
    return make_verbs(*plugins, score_range=ScoreRange.RELATIVE)


def test_relative_scores_leave_out_the_commonest_score_and_are_differences_from_it() -> None:
    tested_verbs = make_relative_verbs(FixedScore({"n1": 20, "n2": 90, "n3": 55, "n4": 55}))
    assert scores(tested_verbs, args_by_name("n1", "n2", "n3", "n4")) == [("n2", 5), ("n1", -5)]
    (decision,) = tested_verbs.decision_log.get_decisions(WEB.key)
    logged = [(node["node"], node["score"]) for node in decision["scores"]]
    assert logged == [("n2", 5), ("n3", 0), ("n4", 0), ("n1", -5)]


def test_relative_scores_of_equal_nodes_are_an_empty_list() -> None:
    assert scores(make_relative_verbs(FixedScore({"n1": 20, "n2": 20})), args_by_name("n1", "n2")) == []
    assert scores(make_relative_verbs(FixedScore({"n1": 20})), args_by_name()) == []


def test_relative_scores_of_infeasible_nodes_are_the_lowest() -> None:
    tested_verbs = make_relative_verbs(
        FixedScore({"n1": 20, "n3": 90, "n4": 20}), RejectingFilter({Reason("no"): ["n2"]})
    )
    assert scores(tested_verbs, args_by_name("n1", "n2", "n3", "n4")) == [("n3", 9), ("n2", -1)]


def test_a_rejected_pod_gives_every_node_zero() -> None:
    tested_verbs = make_verbs(RejectingPreFilter(Status(Code.UNRESOLVABLE, ("no",))), FixedScore({"n1": 20}))
    assert scores(tested_verbs, args_by_name("n1", "n2")) == [("n1", 0), ("n2", 0)]


def test_a_bug_in_a_score_plugin_is_status_500() -> None:
    class RaisesWhileScoring(RaisingPlugin):
        filter = AcceptingFilter.filter

    message = 'running Score plugins: plugin "RaisingPlugin" failed with: ZeroDivisionError: a bug'
    with pytest.raises(RequestError, match=message) as failed:
        run_now(make_verbs(RaisesWhileScoring()).prioritize(args_by_name("n1", "n2")))
    assert failed.value.status == 500


def test_whole_nodes_get_scores_too() -> None:
    args = args_by_node({"metadata": {"name": "new"}}, {"metadata": {"name": "n1"}})
    assert scores(make_verbs(FixedScore({"n1": 5})), args) == [("n1", 10), ("new", 0)]
