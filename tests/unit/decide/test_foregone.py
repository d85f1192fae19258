"""Which answers of PreFilter and PreScore are kept for a shape, and which are asked for again."""

from dataclasses import replace
from typing import Any

import pytest

from extender.cluster.snapshot import Snapshot
from extender.decide.engine import Engine
from extender.decide.feasible import feasible
from extender.decide.rank import Ranking, rank
from extender.framework.columns import ColumnCache
from extender.framework.points import PreFiltered, PreScored
from extender.framework.verdict import Code, Status
from tests.build import a_cluster, a_node, a_pod
from tests.unit.decide.stand_ins import Before, Rating, a_profile


class Keeping(Before):
    """A PreFilter that counts how often it is asked, and says whether its answer may be kept."""

    kept_for_kin = False

    def __init__(self, answer: PreFiltered, kept: Any = True) -> None:
        super().__init__("Keeping", answer)
        self.kept, self.calls = kept, 0
        self.noted: list[Any] = []

    def pre_filter_kept(self, _pod: Any) -> bool:
        if isinstance(self.kept, Exception):
            raise self.kept
        return bool(self.kept)

    def pre_filter(self, pod: Any, cluster: Any) -> PreFiltered:
        self.calls += 1
        return super().pre_filter(pod, cluster)

    def filter(self, pod: Any, nodes: Any, notes: Any) -> Any:
        self.noted.append(notes)
        return super().filter(pod, nodes, notes)


class KeepingRates(Rating):
    """A PreScore that counts how often it is asked, and lets its answer be kept."""

    calls = 0

    def pre_score_kept(self, _pod: Any) -> bool:
        return True

    def pre_score(self, pod: Any, nodes: Any) -> PreScored:
        self.calls += 1
        return super().pre_score(pod, nodes)


@pytest.fixture
def cluster() -> Snapshot:
    return a_cluster(a_node("a"), a_node("b")).snapshot()


def ask_about(pods: list[Any], plugin: Any, cluster: Snapshot, engine: Engine | None = None) -> None:
    engine, profile = engine or Engine(), a_profile(plugin)
    for pod in pods:
        feasible(cluster.query(pod), cluster, profile, engine)


def alike(count: int) -> list[Any]:
    return [a_pod(f"pod-{number}") for number in range(count)]


def test_a_plugin_that_lets_it_be_kept_is_asked_about_three_pods_of_a_shape_only(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered(notes="what it noted"))

    ask_about(alike(5), plugin, cluster)

    assert plugin.calls == 3
    assert plugin.noted == ["what it noted"] * 5


def test_a_pod_of_another_shape_is_asked_about(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered())

    ask_about([*alike(4), a_pod("other", labels={"app": "other"})], plugin, cluster)

    assert plugin.calls == 4


def test_the_only_pod_of_a_shape_teaches_nothing(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered())

    ask_about(alike(1) * 5, plugin, cluster)

    assert plugin.calls == 5


def test_what_is_kept_for_kin_is_asked_about_two_pods_whatever_their_labels_and_amounts(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered(notes="what it noted"))
    plugin.kept_for_kin = True

    ask_about(
        [a_pod(f"pod-{n}", labels={"app": str(n)}, requests={"cpu": str(n)}) for n in range(1, 6)], plugin, cluster
    )

    assert plugin.calls == 2
    assert plugin.noted == ["what it noted"] * 5


def test_what_is_kept_for_kin_is_asked_about_a_pod_with_another_selector(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered())
    plugin.kept_for_kin = True
    other = a_pod("other", spec={"nodeSelector": {"zone": "a"}})

    ask_about([a_pod(f"pod-{number}", labels={"app": str(number)}) for number in range(4)] + [other], plugin, cluster)

    assert plugin.calls == 3


def test_profiles_made_for_one_question_find_what_is_kept_and_leave_nothing_behind(cluster: Snapshot) -> None:
    """As the standalone scheduler makes them to look at a node once more before a pod is bound to it."""
    plugin, engine = Keeping(PreFiltered()), Engine()
    ask_about(alike(3), plugin, cluster, engine)
    query = cluster.query(a_pod("fourth"))
    left = len(query.shape._memo)

    for _ in range(100):
        feasible(query, cluster, replace(a_profile(plugin), pre_filters=(plugin,)), engine)

    assert (plugin.calls, len(query.shape._memo)) == (3, left)


def test_a_kept_skip_spares_the_filter_too(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered(skip=True))

    ask_about(alike(4), plugin, cluster)

    assert (plugin.calls, plugin.asked) == (3, 0)


def test_pods_that_are_alike_in_twos_teach_nothing(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered(), ValueError("asked whether it may be kept"))
    twos = [a_pod(f"{kind}-{number}", labels={"app": kind}) for kind in "abc" for number in range(2)]

    ask_about(twos, plugin, cluster)

    assert plugin.calls == 6


def test_a_round_that_is_ended_knows_nothing_of_the_plugins_whose_turn_did_not_come(cluster: Snapshot) -> None:
    strict, later = Before("Strict", PreFiltered(notes="strict")), Keeping(PreFiltered(notes="later", skip=True))
    engine, profile = Engine(), a_profile(strict, later)
    for pod in alike(4):
        feasible(cluster.query(pod), cluster, profile, engine)
    strict.answer = PreFiltered(Status(Code.UNRESOLVABLE, ("no",)), notes="refused")

    before = feasible(cluster.query(a_pod("last")), cluster, profile, engine).before

    assert later.calls == 3
    assert (before.notes, before.skipped) == ({"Strict": "refused"}, frozenset())


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        pytest.param(PreFiltered(), False, id="the plugin does not let it"),
        pytest.param(PreFiltered(nodes=frozenset(["a"])), True, id="it narrows the nodes down"),
        pytest.param(PreFiltered(Status(Code.UNSCHEDULABLE, ("no",))), True, id="it turns the pod away"),
        pytest.param(PreFiltered(Status(Code.UNRESOLVABLE, ("no",))), True, id="it turns the pod away for good"),
    ],
)
def test_other_answers_are_asked_for_each_time(answer: PreFiltered, kept: bool, cluster: Snapshot) -> None:
    plugin = Keeping(answer, kept)

    ask_about(alike(4), plugin, cluster)

    assert plugin.calls == 4


def test_nothing_is_kept_where_nothing_is_to_be_kept(cluster: Snapshot) -> None:
    plugin = Keeping(PreFiltered())

    ask_about(alike(4), plugin, cluster, Engine(columns=ColumnCache(enabled=False)))

    assert plugin.calls == 4


def test_a_plugin_that_cannot_say_whether_is_named(cluster: Snapshot) -> None:
    profile, engine = a_profile(Keeping(PreFiltered(), ValueError("no idea"))), Engine()

    first, second, *others = [feasible(cluster.query(pod), cluster, profile, engine) for pod in alike(4)]

    assert first.any
    assert second.any
    assert [each.message() for each in others] == [
        'running PreFilter plugin "Keeping": pre_filter_kept: ValueError: no idea'
    ] * 2


@pytest.mark.parametrize(
    ("answer", "scored"), [(PreScored(), {"Rates": [1, 2]}), (PreScored(skip=True), {})], ids=["scores", "skips"]
)
def test_answers_of_pre_score_are_kept_as_well(
    answer: PreScored, scored: dict[str, list[int]], cluster: Snapshot
) -> None:
    plugin, engine = KeepingRates("Rates", {"a": 1, "b": 2}, answer), Engine()
    profile = a_profile(plugin)

    def ranked(pod: Any) -> Ranking:
        query = cluster.query(pod)
        found = feasible(query, cluster, profile, engine)
        return rank(query, cluster, profile, engine, found.feasible, found.before)

    rankings = [ranked(pod) for pod in alike(4)]

    assert plugin.calls == 3
    assert [{name: each.raw.tolist() for name, each in one.plugins.items()} for one in rankings] == [scored] * 4
