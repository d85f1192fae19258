"""The verb preempt: kube-scheduler's victims in both forms, and the result."""

import json
from typing import Any

import pytest

from extender.app import wiring
from extender.cache.cache import Cache
from extender.extender_api.payloads import decode_preemption_args
from extender.extender_api.request_limits import RequestError
from extender.extender_api.verbs import NO_VICTIMS_MESSAGE, Verbs
from tests.build import make_cluster
from tests.coroutines import run_now
from tests.fake_plugins import RaisingPlugin, make_profile
from tests.unit.preemption.builders import make_budget, make_small_node, make_victim

SCHEDULING = wiring.build_setup()
HIGH = {
    "metadata": {"name": "high", "namespace": "default", "uid": "uid-default-high"},
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 100,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    },
}


def make_verbs(cache: Cache, profile: Any = SCHEDULING.first_profile) -> Verbs:
    return Verbs(
        cache,
        {profile.scheduler_name: profile},
        profile,
        wiring.make_runtime(),
        wiring.make_runtime(cache_results=False),
    )


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


def preempt(cache: Cache, **sent: Any) -> dict[str, tuple[list[str], int]]:
    args = run_now(decode_preemption_args(json.dumps({"Pod": HIGH, **sent}).encode()))
    victims = run_now(make_verbs(cache).preempt(args)).node_name_to_meta_victims
    return {
        node: ([pod.uid.removeprefix("uid-default-") for pod in victims_.pods], victims_.num_pdb_violations)
        for node, victims_ in victims.items()
    }


def two_nodes(*more: Any) -> Cache:
    return make_cluster(
        make_small_node("n1"),
        make_small_node("n2"),
        make_victim("a", "n1", priority=2),
        make_victim("b", "n1", priority=1),
        make_victim("c", "n2", cpu="2", priority=3),
        *more,
    )


@pytest.mark.parametrize("form", [by_uid, by_pod], ids=["by uid", "by pod"])
def test_victims_are_confirmed_or_reprieved_in_either_form(form: Any) -> None:
    key = "NodeNameToMetaVictims" if form is by_uid else "NodeNameToVictims"
    assert preempt(two_nodes(), **{key: form({"n1": ["a", "b"], "n2": ["c"]})}) == {"n1": (["b"], 0), "n2": (["c"], 0)}


def test_a_missing_victim_is_added() -> None:
    cache = make_cluster(
        make_small_node("n1", cpu="1"), make_victim("a", "n1", priority=2), make_victim("b", "n1", cpu="0", priority=1)
    )
    assert preempt(cache, NodeNameToMetaVictims=by_uid({"n1": ["b"]})) == {"n1": (["a"], 0)}


def test_unknown_nodes_and_nodes_without_help_are_left_out() -> None:
    cache = make_cluster(make_small_node("n1", cpu="500m"), make_victim("a", "n1", cpu="500m"))
    assert preempt(cache, NodeNameToMetaVictims=by_uid({"n1": ["a"], "elsewhere": ["x"]})) == {}


def test_pdb_violations_are_counted_again() -> None:
    cache = two_nodes(make_victim("d", "n2", cpu="0", labels={"app": "x"}), make_budget(0, {"app": "x"}))
    assert preempt(cache, NodeNameToMetaVictims=by_uid({"n2": ["c"]}, broken=5)) == {"n2": (["c"], 0)}


def test_an_unknown_pod_stays_a_victim_and_keeps_its_pdb_violation() -> None:
    assert preempt(two_nodes(), NodeNameToMetaVictims=by_uid({"n1": ["b", "new"]}, broken=1)) == {
        "n1": (["b", "new"], 1)
    }


def test_a_request_without_victims_is_an_error() -> None:
    with pytest.raises(RequestError, match=NO_VICTIMS_MESSAGE) as caught:
        preempt(two_nodes())
    assert caught.value.status == 400


def test_a_bug_in_a_plugin_is_status_500() -> None:
    class RaisesFirst(RaisingPlugin):
        def pre_filter(self, *_: Any) -> Any:
            raise ZeroDivisionError("a bug")

    args = run_now(
        decode_preemption_args(json.dumps({"Pod": HIGH, "NodeNameToMetaVictims": by_uid({"n1": ["a"]})}).encode())
    )
    with pytest.raises(RequestError) as caught:
        run_now(make_verbs(two_nodes(), make_profile(RaisesFirst())).preempt(args))
    assert caught.value.status == 500
    assert caught.value.message == 'running PreFilter plugin "RaisingPlugin": ZeroDivisionError: a bug'
