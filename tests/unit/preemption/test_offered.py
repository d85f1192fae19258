"""Victims that somebody else chose: trimmed, completed, declined."""

from collections.abc import Mapping, Sequence
from typing import Any

from extender import wiring
from extender.cluster.state import ClusterState
from extender.decide.engine import Engine
from extender.framework.points import PreFiltered
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.objects.pod import Pod
from extender.preemption.offered import Settled, settle
from tests.build import a_cluster, a_node
from tests.unit.decide.stand_ins import Before, a_profile
from tests.unit.preemption.worlds import a_budget, a_small_node, high, low


def _settled(
    state: ClusterState, pod: Pod, offers: Mapping[str, Sequence[str]], profile: Profile | None = None
) -> Settled:
    cluster = state.snapshot()
    by_uid = {node: [f"uid-default-{name}" for name in names] for node, names in offers.items()}
    return settle(cluster.query(pod), cluster, profile or wiring.scheduling().first, Engine(), by_uid)


def _victims(settled: Settled) -> dict[str, list[str]]:
    return {
        node: [victim.pod.metadata.name for victim in candidate.victims]
        for node, candidate in settled.candidates.items()
    }


def _two(**more: Any) -> ClusterState:
    return a_cluster(a_small_node("n"), low("a", "n", priority=2, **more), low("b", "n", priority=1, **more))


def test_victims_that_must_go_are_confirmed() -> None:
    assert _victims(_settled(_two(), high(cpu="2"), {"n": ["a", "b"]})) == {"n": ["a", "b"]}


def test_victims_that_need_not_go_are_spared() -> None:
    assert _victims(_settled(_two(), high(cpu="1"), {"n": ["a", "b"]})) == {"n": ["b"]}


def test_victims_that_are_not_enough_are_completed_on_that_node() -> None:
    state = a_cluster(
        a_small_node("n", cpu="3"), *(low(name, "n", priority=p) for name, p in (("a", 3), ("b", 2), ("c", 1)))
    )

    assert _victims(_settled(state, high(cpu="2"), {"n": ["b"]})) == {"n": ["b", "c"]}


def test_a_victim_that_does_not_help_is_replaced_by_one_that_does() -> None:
    port = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
    state = a_cluster(a_small_node("n"), low("port", "n", priority=5, spec=port), low("other", "n", cpu="1"))

    assert _victims(_settled(state, high(cpu="1", spec=port), {"n": ["other"]})) == {"n": ["port"]}


def test_an_offer_that_cannot_help_is_declined() -> None:
    state = a_cluster(
        a_small_node("n"), low("a", "n", priority=2), low("equal", "n", priority=100), a_small_node("other")
    )
    state.put_pod(low("c", "other", cpu="2"))

    assert _victims(_settled(state, high(cpu="2"), {"n": ["a"], "other": ["c"]})) == {"other": ["c"]}


def test_a_node_that_refuses_the_pod_for_good_is_declined() -> None:
    tainted = a_node("n", taints=[{"key": "only", "effect": "NoSchedule"}])

    assert _victims(_settled(a_cluster(tainted, low("a", "n")), high(), {"n": ["a"]})) == {}


def test_a_node_that_is_not_known_is_declined() -> None:
    assert _victims(_settled(_two(), high(cpu="2"), {"gone": ["a"], "n": ["a", "b"]})) == {"n": ["a", "b"]}


def test_a_pod_of_no_lower_priority_is_never_a_victim() -> None:
    state = a_cluster(a_small_node("n"), low("equal", "n", priority=100), low("b", "n"))

    assert _victims(_settled(state, high(cpu="1"), {"n": ["equal", "b"]})) == {"n": ["b"]}


def test_an_offer_of_which_nothing_would_have_to_go_stands() -> None:
    """Whoever offered them knows of something that these plugins do not see."""
    state = a_cluster(a_small_node("n", cpu="8"), low("a", "n"))

    assert _victims(_settled(state, high(cpu="1"), {"n": ["a"]})) == {"n": ["a"]}


def test_victims_that_are_not_known_to_be_there_are_passed_on() -> None:
    settled = _settled(_two(), high(cpu="2"), {"n": ["a", "stranger", "b"]})

    assert _victims(settled) == {"n": ["a", "b"]}
    assert settled.unknown == {"n": ("uid-default-stranger",)}


def test_a_node_where_only_unknown_victims_must_go_is_kept() -> None:
    settled = _settled(a_cluster(a_small_node("n", cpu="8")), high(cpu="1"), {"n": ["stranger"]})

    assert _victims(settled) == {"n": []}
    assert settled.unknown == {"n": ("uid-default-stranger",)}


def test_broken_budgets_are_counted_again_for_those_that_go() -> None:
    state = _two(labels={"app": "db"})
    state.put_object(a_budget(1, {"app": "db"}))

    both, one = (_settled(state, high(cpu=cpu), {"n": ["a", "b"]}).candidates["n"] for cpu in ("2", "1"))

    assert (len(both.victims), both.violations) == (2, 1)
    assert (len(one.victims), one.violations) == (1, 0)


def test_nominated_pods_keep_their_room() -> None:
    state = _two()
    state.nominate(high("first", cpu="1"), "n")

    assert _victims(_settled(state, high(cpu="1"), {"n": ["b"]})) == {"n": ["a", "b"]}


def test_a_pod_that_is_turned_away_as_a_whole_gets_no_node() -> None:
    refusing = a_profile(Before("Refusing", PreFiltered(Status(Code.UNRESOLVABLE, ("never",)))))

    settled = _settled(_two(), high(), {"n": ["a"]}, refusing)

    assert (settled.candidates, settled.error) == ({}, None)


def test_a_plugin_that_fails_is_told() -> None:
    failing = a_profile(Before("Failing", PreFiltered(Status(Code.ERROR, ("out of order",)))))

    settled = _settled(_two(), high(), {"n": ["a"]}, failing)

    assert settled.candidates == {}
    assert settled.error is not None
    assert "out of order" in settled.error.message


def test_only_nodes_that_pre_filter_leaves_over_are_confirmed() -> None:
    chosen = a_profile(Before("Choosing", PreFiltered(nodes=frozenset({"other"}))))

    assert _victims(_settled(_two(), high(), {"n": ["a"]}, chosen)) == {}
