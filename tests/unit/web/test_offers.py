"""The verb preempt: victims that kube-scheduler offers, in both forms, and what is answered."""

import json
from typing import Any

import pytest

from extender import wiring
from extender.cluster.state import ClusterState
from extender.web.verbs import NOTHING_OFFERED, Verbs
from extender.web.wire import RequestError, decode_preemption_args
from tests.build import a_cluster
from tests.fake_plugins import Raises, a_profile
from tests.unit.preemption.worlds import a_budget, a_small_node, low

SCHEDULING = wiring.scheduling()
HIGH = {
    "metadata": {"name": "high", "namespace": "default", "uid": "uid-default-high"},
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 100,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    },
}


def verbs(state: ClusterState, profile: Any = SCHEDULING.first) -> Verbs:
    return Verbs(state, {profile.scheduler_name: profile}, profile, wiring.engine(), wiring.engine(keep=False))


def by_uid(offer: dict[str, list[str]], broken: int = 0) -> dict[str, Any]:
    return {
        node: {"Pods": [{"UID": f"uid-default-{name}"} for name in names], "NumPDBViolations": broken}
        for node, names in offer.items()
    }


def by_pod(offer: dict[str, list[str]], broken: int = 0) -> dict[str, Any]:
    return {
        node: {
            "Pods": [{"metadata": {"name": name, "uid": f"uid-default-{name}"}} for name in names],
            "NumPDBViolations": broken,
        }
        for node, names in offer.items()
    }


def answered(state: ClusterState, **sent: Any) -> dict[str, tuple[list[str], int]]:
    args = decode_preemption_args(json.dumps({"Pod": HIGH, **sent}).encode())
    found = verbs(state).preempt(args).node_name_to_meta_victims
    return {
        node: ([pod.uid.removeprefix("uid-default-") for pod in each.pods], each.num_pdb_violations)
        for node, each in found.items()
    }


def two_nodes(*more: Any) -> ClusterState:
    return a_cluster(
        a_small_node("n1"),
        a_small_node("n2"),
        low("a", "n1", priority=2),
        low("b", "n1", priority=1),
        low("c", "n2", cpu="2", priority=3),
        *more,
    )


@pytest.mark.parametrize("form", [by_uid, by_pod], ids=["by uid", "by pod"])
def test_victims_are_confirmed_or_spared_in_either_form(form: Any) -> None:
    key = "NodeNameToMetaVictims" if form is by_uid else "NodeNameToVictims"
    assert answered(two_nodes(), **{key: form({"n1": ["a", "b"], "n2": ["c"]})}) == {"n1": (["b"], 0), "n2": (["c"], 0)}


def test_a_victim_that_is_missing_is_added() -> None:
    state = a_cluster(a_small_node("n1", cpu="1"), low("a", "n1", priority=2), low("b", "n1", cpu="0", priority=1))
    assert answered(state, NodeNameToMetaVictims=by_uid({"n1": ["b"]})) == {"n1": (["a"], 0)}


def test_nodes_where_it_does_not_help_and_unknown_ones_are_left_out() -> None:
    state = a_cluster(a_small_node("n1", cpu="500m"), low("a", "n1", cpu="500m"))
    assert answered(state, NodeNameToMetaVictims=by_uid({"n1": ["a"], "elsewhere": ["x"]})) == {}


def test_broken_budgets_are_counted_anew() -> None:
    state = two_nodes(low("d", "n2", cpu="0", labels={"app": "x"}), a_budget(0, {"app": "x"}))
    assert answered(state, NodeNameToMetaVictims=by_uid({"n2": ["c"]}, broken=5)) == {"n2": (["c"], 0)}


def test_a_pod_that_is_not_known_yet_stays_a_victim_and_its_budget_may_be_broken() -> None:
    assert answered(two_nodes(), NodeNameToMetaVictims=by_uid({"n1": ["b", "new"]}, broken=1)) == {
        "n1": (["b", "new"], 1)
    }


def test_a_request_without_victims_is_none() -> None:
    with pytest.raises(RequestError, match=NOTHING_OFFERED) as refused:
        answered(two_nodes())
    assert refused.value.status == 400


def test_a_bug_in_a_plugin_is_told_with_a_status() -> None:
    class RaisesFirst(Raises):
        def pre_filter(self, *_: Any) -> Any:
            raise ZeroDivisionError("a bug")

    args = decode_preemption_args(json.dumps({"Pod": HIGH, "NodeNameToMetaVictims": by_uid({"n1": ["a"]})}).encode())
    with pytest.raises(RequestError) as refused:
        verbs(two_nodes(), a_profile(RaisesFirst())).preempt(args)
    assert refused.value.status == 500
    assert refused.value.message == 'running PreFilter plugin "Raises": ZeroDivisionError: a bug'
