"""The verbs with plugins that do what a test wants: who is answered, in which part of the answer, and how."""

import json
from typing import Any, ClassVar

import pytest

from extender.cluster.state import ClusterState
from extender.decide.engine import Engine
from extender.framework.columns import ColumnCache
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Reason, Status
from extender.objects.extender_v1 import FilterResult
from extender.web.listed import Listed
from extender.web.refusing import UNKNOWN
from extender.web.scaling import ScoreRange
from extender.web.verbs import NOTHING_ASKED, Intake, Verbs
from extender.web.wire import ExtenderArgs, RequestError, decode_args
from tests.build import a_cluster, a_node, a_pod
from tests.fake_plugins import AcceptsAll, Counts, CountsPods, Raises, Refuses, Scores, TurnsAway, a_profile

NODES = [a_node(name) for name in ("n1", "n2", "n3", "n4")]
WEB = a_pod("web")


def verbs(*plugins: Any, cluster: ClusterState | None = None, others: tuple[Profile, ...] = (), **more: Any) -> Verbs:
    profile = a_profile(*plugins)
    profiles = {each.scheduler_name: each for each in (profile, *others)}
    state = a_cluster(*NODES) if cluster is None else cluster
    return Verbs(state, profiles, profile, Engine(), Engine(columns=ColumnCache(enabled=False)), **more)


def by_names(*names: str) -> ExtenderArgs:
    return ExtenderArgs(WEB, names=Listed(list(names)))


def by_nodes(*nodes: dict[str, Any]) -> ExtenderArgs:
    return decode_args(json.dumps({"Pod": {"metadata": {"name": "web"}}, "Nodes": {"items": nodes}}).encode())


def scores(verb: Verbs, args: ExtenderArgs) -> list[tuple[str, int]]:
    return [(each.host, each.score) for each in verb.prioritize(args)]


def test_only_nodes_that_were_asked_about_are_answered() -> None:
    plugin = Refuses({Reason("no"): ["n1", "n2"]})
    assert verbs(plugin).filter(by_names("n2", "n4")) == FilterResult(node_names=["n4"], failed_nodes={"n2": "no"})


def test_names_are_answered_in_the_order_they_were_asked() -> None:
    assert verbs(AcceptsAll()).filter(by_names("n3", "n1", "n2")).node_names == ["n3", "n1", "n2"]


def test_nodes_that_eviction_cannot_help_are_told_apart() -> None:
    plugin = Refuses({Reason("no room"): ["n1"], Reason("wrong zone", Code.UNRESOLVABLE): ["n2"]})
    assert verbs(plugin).filter(by_names("n1", "n2", "n3")) == FilterResult(
        node_names=["n3"], failed_nodes={"n1": "no room"}, failed_and_unresolvable_nodes={"n2": "wrong zone"}
    )


def test_several_reasons_of_a_plugin_are_joined_in_its_order_and_one_that_is_final_makes_the_node_final() -> None:
    plugin = Refuses(
        {Reason("b"): ["n1", "n2", "n3"], Reason("a"): ["n1", "n2"], Reason("z", Code.UNRESOLVABLE): ["n2"]}
    )
    answer = verbs(plugin).filter(by_names("n1", "n2", "n3"))
    assert answer.failed_nodes == {"n1": "b, a", "n3": "b"}
    assert answer.failed_and_unresolvable_nodes == {"n2": "b, a, z"}


def test_a_node_is_explained_by_the_first_plugin_that_refuses_it() -> None:
    class RefusesLater(Refuses):
        name: ClassVar[str] = "RefusesLater"

    first = Refuses({Reason("first"): ["n1"]})
    later = RefusesLater({Reason("second", Code.UNRESOLVABLE): ["n1", "n2"]})
    answer = verbs(first, later).filter(by_names("n1", "n2"))
    assert answer.failed_nodes == {"n1": "first"}
    assert answer.failed_and_unresolvable_nodes == {"n2": "second"}


def test_a_refusal_without_words_is_a_refusal_all_the_same() -> None:
    answer = verbs(TurnsAway(Status(Code.UNSCHEDULABLE))).filter(by_names("n1"))
    assert answer == FilterResult(node_names=[], failed_nodes={"n1": ""})


def test_a_name_we_do_not_know_is_said_so_and_not_dropped() -> None:
    assert verbs(AcceptsAll()).filter(by_names("n1", "new", "")) == FilterResult(
        node_names=["n1"], failed_nodes={"new": UNKNOWN, "": UNKNOWN}
    )


def test_without_any_node_every_name_is_unknown() -> None:
    answer = verbs(AcceptsAll(), cluster=ClusterState()).filter(by_names("n1"))
    assert answer == FilterResult(node_names=[], failed_nodes={"n1": UNKNOWN})


@pytest.mark.parametrize(
    ("code", "final"), [(Code.UNSCHEDULABLE, False), (Code.UNRESOLVABLE, True)], ids=["for now", "for good"]
)
def test_a_pod_turned_away_before_any_node_is_refused_by_every_node_asked(code: Code, final: bool) -> None:
    answer = verbs(TurnsAway(Status(code, ("not this one", "never")))).filter(by_names("n2", "n1"))
    refused = {"n2": "not this one, never", "n1": "not this one, never"}
    parts = (answer.failed_nodes, answer.failed_and_unresolvable_nodes)
    assert answer.node_names == []
    assert parts == (({}, refused) if final else (refused, {}))


def test_nodes_that_are_left_out_before_filtering_are_refused_for_good() -> None:
    answer = verbs(TurnsAway(nodes=frozenset({"n1", "gone"})), AcceptsAll()).filter(by_names("n1", "n2"))
    assert answer.node_names == ["n1"]
    assert answer.failed_and_unresolvable_nodes == {"n2": "node(s) didn't satisfy plugin(s) [TurnsAway]"}


def test_a_bug_in_a_plugin_is_an_error_that_names_it() -> None:
    answer = verbs(Raises()).filter(by_names("n1"))
    assert answer == FilterResult(error='running "Raises" filter plugin: ZeroDivisionError: a bug')


def test_a_request_about_nothing_is_an_error() -> None:
    for verb in (verbs(AcceptsAll()).filter, verbs(AcceptsAll()).prioritize):
        with pytest.raises(RequestError, match=NOTHING_ASKED) as refused:
            verb(ExtenderArgs(WEB))
        assert refused.value.status == 400


def test_the_profile_is_that_of_the_pod_s_scheduler_name_else_the_first() -> None:
    batch, counts = a_profile(Refuses({Reason("not for batch"): None}), scheduler_name="batch"), Counts()
    verb = verbs(counts, others=(batch,))
    for_batch = a_pod("job", spec={"schedulerName": "batch"})
    for_nobody = a_pod("odd", spec={"schedulerName": "someone-else"})
    assert verb.filter(ExtenderArgs(for_batch, names=Listed(["n1"]))).failed_nodes == {"n1": "not for batch"}
    assert verb.filter(ExtenderArgs(for_nobody, names=Listed(["n1"]))).node_names == ["n1"]
    assert counts.asked == [("default/odd", 4)]


def test_nodes_are_answered_with_nodes() -> None:
    args = by_nodes({"metadata": {"name": "n1"}, "extra": 1}, {"metadata": {"name": "n2"}})
    answer = verbs(Refuses({Reason("no"): ["n2"]})).filter(args)
    assert answer.node_names is None
    assert answer.nodes is not None
    assert [bytes(each) for each in answer.nodes["items"]] == [b'{"metadata": {"name": "n1"}, "extra": 1}']
    assert answer.failed_nodes == {"n2": "no"}


def test_nodes_are_judged_as_sent_with_our_pods_on_them_and_the_cluster_stays_as_it_is() -> None:
    cluster = a_cluster(*NODES, a_pod("there", node="n1"), a_pod("early", node="new"))
    verb = verbs(CountsPods(), cluster=cluster)
    sent = [{"metadata": {"name": name, "labels": {"sent": "yes"}}} for name in ("n1", "n2", "new")]
    assert verb.filter(by_nodes(*sent)).failed_nodes == {"n1": "has pods", "new": "has pods"}
    assert list(cluster.snapshot().names) == ["n1", "n2", "n3", "n4"]
    assert cluster.snapshot().nodes[0].metadata.labels == {}
    assert verb.filter(by_names("n1", "n2")).failed_nodes == {"n1": "has pods"}


def test_nodes_are_judged_without_any_cluster() -> None:
    answer = verbs(AcceptsAll(), cluster=ClusterState()).filter(by_nodes({"metadata": {"name": "n9"}}))
    assert answer.nodes is not None
    assert len(answer.nodes["items"]) == 1


def test_a_node_with_a_quantity_that_is_none_is_refused_by_its_place() -> None:
    wrong = {"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "lots"}}}
    with pytest.raises(RequestError, match=r'Nodes\.items\[1\]\.status\.allocatable: quantity "lots"') as refused:
        verbs(AcceptsAll()).filter(by_nodes({"metadata": {"name": "n1"}}, wrong))
    assert refused.value.status == 400


def test_a_pod_with_a_problem_is_refused_by_its_field() -> None:
    intake = Intake(problems=lambda pod: [("spec.x", "is odd")])
    with pytest.raises(RequestError, match=r"Pod\.spec\.x: is odd"):
        verbs(AcceptsAll(), intake=intake).filter(by_names("n1"))


def test_an_amount_beyond_64_bits_is_just_a_lot() -> None:
    huge = ExtenderArgs(a_pod("huge", requests={"cpu": 2**70}), names=Listed(["n1"]))
    assert verbs(AcceptsAll()).filter(huge).node_names == ["n1"]


def test_the_best_node_comes_first_and_ties_keep_the_order_asked() -> None:
    verb = verbs(Scores({"n1": 20, "n2": 90, "n3": 20, "n4": 55}))
    assert scores(verb, by_names("n3", "n4", "n1", "n2")) == [("n2", 10), ("n4", 5), ("n3", 0), ("n1", 0)]


def test_refused_and_unknown_nodes_have_zero_and_all_others_more() -> None:
    verb = verbs(Scores({"n1": 20, "n2": 90}), Refuses({Reason("no"): ["n2"]}))
    assert scores(verb, by_names("n2", "new", "n1", "n3")) == [("n1", 10), ("n3", 1), ("n2", 0), ("new", 0)]


def test_the_raw_mode_answers_totals() -> None:
    verb = verbs(Scores({"n1": 20, "n2": 90}), Refuses({Reason("no"): ["n3"]}), score_range=ScoreRange.RAW)
    assert scores(verb, by_names("n1", "n2", "n3")) == [("n2", 90), ("n1", 20), ("n3", 0)]


def test_a_pod_that_is_turned_away_gives_every_node_zero() -> None:
    verb = verbs(TurnsAway(Status(Code.UNRESOLVABLE, ("no",))), Scores({"n1": 20}))
    assert scores(verb, by_names("n1", "n2")) == [("n1", 0), ("n2", 0)]


def test_a_bug_in_a_score_plugin_is_a_status_that_schedulers_pass_over() -> None:
    class RaisesWhileScoring(Raises):
        filter = AcceptsAll.filter

    said = 'running Score plugins: plugin "Raises" failed with: ZeroDivisionError: a bug'
    with pytest.raises(RequestError, match=said) as failed:
        verbs(RaisesWhileScoring()).prioritize(by_names("n1", "n2"))
    assert failed.value.status == 500


def test_whole_nodes_are_ranked_too() -> None:
    args = by_nodes({"metadata": {"name": "new"}}, {"metadata": {"name": "n1"}})
    assert scores(verbs(Scores({"n1": 5})), args) == [("n1", 10), ("new", 0)]
