"""Proposed victims are reprieved, completed or dropped."""

from collections.abc import Mapping, Sequence
from typing import Any

from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import PreFilterResult
from extender.framework.profiles import Profile
from extender.framework.status import Code, Status
from extender.preemption.extender_victims import ReviewedVictims, review_victims
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import FakePreFilter, make_profile
from tests.unit.preemption.builders import make_budget, make_preemptor, make_small_node, make_victim


def _settled(
    state: Cache, pod: Pod, offers: Mapping[str, Sequence[str]], profile: Profile | None = None
) -> ReviewedVictims:
    snapshot = state.snapshot()
    by_uid = {node: [f"uid-default-{name}" for name in names] for node, names in offers.items()}
    parts = list(
        review_victims(
            snapshot.make_pod_info(pod),
            snapshot,
            profile or wiring.build_setup().first_profile,
            PluginRuntime(),
            by_uid,
        )
    )
    assert len(parts) <= 1
    return parts[0] if parts else ReviewedVictims({}, {})


def test_the_nodes_are_reviewed_in_parts_with_few_pods() -> None:
    nodes = [f"n{number}" for number in range(400)]
    cache = make_cluster(*map(make_small_node, nodes), *(make_victim(f"v-{node}", node, priority=1) for node in nodes))
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_preemptor(cpu="2"))
    offers = {node: [f"uid-default-v-{node}"] for node in nodes}
    parts = list(review_victims(pod, snapshot, wiring.build_setup().first_profile, PluginRuntime(), offers))
    assert [len(part.candidates) for part in parts] == [363, 37]
    assert [name for part in parts for name in part.candidates] == nodes


def _victims(settled: ReviewedVictims) -> dict[str, list[str]]:
    return {
        node: [victim.pod.metadata.name for victim in candidate.victims]
        for node, candidate in settled.candidates.items()
    }


def _two(**more: Any) -> Cache:
    return make_cluster(
        make_small_node("n"), make_victim("a", "n", priority=2, **more), make_victim("b", "n", priority=1, **more)
    )


def test_victims_that_must_go_are_confirmed() -> None:
    assert _victims(_settled(_two(), make_preemptor(cpu="2"), {"n": ["a", "b"]})) == {"n": ["a", "b"]}


def test_victims_that_need_not_go_are_reprieved() -> None:
    assert _victims(_settled(_two(), make_preemptor(cpu="1"), {"n": ["a", "b"]})) == {"n": ["b"]}


def test_victims_that_are_not_enough_are_completed_on_that_node() -> None:
    state = make_cluster(
        make_small_node("n", cpu="3"),
        *(make_victim(name, "n", priority=p) for name, p in (("a", 3), ("b", 2), ("c", 1))),
    )

    assert _victims(_settled(state, make_preemptor(cpu="2"), {"n": ["b"]})) == {"n": ["b", "c"]}


def test_a_victim_that_does_not_help_is_replaced_by_one_that_does() -> None:
    port = {"containers": [{"name": "a", "ports": [{"hostPort": 80}]}]}
    state = make_cluster(
        make_small_node("n"), make_victim("port", "n", priority=5, spec=port), make_victim("other", "n", cpu="1")
    )

    assert _victims(_settled(state, make_preemptor(cpu="1", spec=port), {"n": ["other"]})) == {"n": ["port"]}


def test_a_node_where_preemption_does_not_help_is_dropped() -> None:
    state = make_cluster(
        make_small_node("n"),
        make_victim("a", "n", priority=2),
        make_victim("equal", "n", priority=100),
        make_small_node("other"),
    )
    state.add_or_update_pod(make_victim("c", "other", cpu="2"))

    assert _victims(_settled(state, make_preemptor(cpu="2"), {"n": ["a"], "other": ["c"]})) == {"other": ["c"]}


def test_an_unresolvable_node_is_dropped() -> None:
    tainted = make_node("n", taints=[{"key": "only", "effect": "NoSchedule"}])

    assert _victims(_settled(make_cluster(tainted, make_victim("a", "n")), make_preemptor(), {"n": ["a"]})) == {}


def test_an_unknown_node_is_dropped() -> None:
    assert _victims(_settled(_two(), make_preemptor(cpu="2"), {"gone": ["a"], "n": ["a", "b"]})) == {"n": ["a", "b"]}


def test_a_pod_of_no_lower_priority_is_never_a_victim() -> None:
    state = make_cluster(make_small_node("n"), make_victim("equal", "n", priority=100), make_victim("b", "n"))

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": ["equal", "b"]})) == {"n": ["b"]}


def test_a_proposal_of_which_no_victim_needs_to_go_is_accepted_unchanged() -> None:
    """The proposing scheduler may have plugins that this profile does not have."""
    state = make_cluster(make_small_node("n", cpu="8"), make_victim("a", "n"))

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": ["a"]})) == {"n": ["a"]}


def test_unknown_victims_are_passed_on() -> None:
    settled = _settled(_two(), make_preemptor(cpu="2"), {"n": ["a", "stranger", "b"]})

    assert _victims(settled) == {"n": ["a", "b"]}
    assert settled.unknown_uids == {"n": ("uid-default-stranger",)}


def test_a_node_with_only_unknown_victims_stays_a_candidate() -> None:
    settled = _settled(make_cluster(make_small_node("n", cpu="8")), make_preemptor(cpu="1"), {"n": ["stranger"]})

    assert _victims(settled) == {"n": []}
    assert settled.unknown_uids == {"n": ("uid-default-stranger",)}


def test_pdb_violations_are_recounted_for_the_remaining_victims() -> None:
    state = _two(labels={"app": "db"})
    state.add_or_update_object(make_budget(1, {"app": "db"}))

    both, one = (_settled(state, make_preemptor(cpu=cpu), {"n": ["a", "b"]}).candidates["n"] for cpu in ("2", "1"))

    assert (len(both.victims), both.num_pdb_violations) == (2, 1)
    assert (len(one.victims), one.num_pdb_violations) == (1, 0)


def test_nominated_pods_keep_their_node() -> None:
    state = _two()
    state.nominate(make_preemptor("first", cpu="1"), "n")

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": ["b"]})) == {"n": ["a", "b"]}


def test_a_pod_that_pre_filter_rejects_gets_no_node() -> None:
    refusing = make_profile(FakePreFilter("Refusing", PreFilterResult(Status(Code.UNRESOLVABLE, ("never",)))))

    settled = _settled(_two(), make_preemptor(), {"n": ["a"]}, refusing)

    assert (settled.candidates, settled.error) == ({}, None)


def test_a_plugin_error_is_reported() -> None:
    failing = make_profile(FakePreFilter("Failing", PreFilterResult(Status(Code.ERROR, ("out of order",)))))

    settled = _settled(_two(), make_preemptor(), {"n": ["a"]}, failing)

    assert settled.candidates == {}
    assert settled.error is not None
    assert "out of order" in settled.error.message


def test_only_nodes_that_pre_filter_leaves_are_confirmed() -> None:
    chosen = make_profile(FakePreFilter("Choosing", PreFilterResult(node_names=frozenset({"other"}))))

    assert _victims(_settled(_two(), make_preemptor(), {"n": ["a"]}, chosen)) == {}


def test_a_node_without_proposed_victims_that_needs_none_is_accepted_for_the_next_extender() -> None:
    """Source: pkg/scheduler/framework/preemption/preemption.go, Evaluator.callExtenders (1.38)."""
    state = make_cluster(make_small_node("n", cpu="8"), make_victim("a", "n"))

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": []})) == {"n": []}


def test_a_node_without_proposed_victims_gets_those_that_this_profile_needs() -> None:
    assert _victims(_settled(_two(), make_preemptor(cpu="1"), {"n": []})) == {"n": ["b"]}


def test_a_node_without_proposed_victims_is_dropped_if_no_victim_helps() -> None:
    state = make_cluster(make_small_node("n"), make_victim("equal", "n", cpu="2", priority=100))

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": []})) == {}


def test_a_node_with_only_victims_that_cannot_be_evicted_is_no_candidate() -> None:
    state = make_cluster(make_small_node("n", cpu="8"), make_victim("equal", "n", priority=100))

    assert _victims(_settled(state, make_preemptor(cpu="1"), {"n": ["equal"]})) == {}


def test_a_pod_that_is_only_assumed_is_no_added_victim() -> None:
    """kube-scheduler may not know the pod on that node, and would end the preemption for all nodes.

    Source: pkg/scheduler/extender.go, HTTPExtender.convertPodUIDToPod (1.36).
    """
    state = make_cluster(make_small_node("n"), make_victim("b", "n", priority=2))
    assumed_pod = make_pod("a", requests={"cpu": "1"}, priority=1)
    state.assume(assumed_pod, "n")

    assert _victims(_settled(state, make_preemptor(cpu="2"), {"n": ["b"]})) == {}
    assert _victims(_settled(state, make_preemptor(cpu="2"), {"n": ["a", "b"]})) == {"n": ["b", "a"]}
    assert _victims(_settled(state, make_preemptor(cpu="2"), {"n": ["a"]})) == {"n": ["b", "a"]}
