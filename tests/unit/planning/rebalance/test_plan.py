"""The kubectl commands of steps, and their plain values."""

from extender.answers.rebalance import PodPlacement
from extender.planning.rebalance.plan import Action, Change, Step, make_command, make_eviction


def test_an_eviction_asks_the_eviction_api() -> None:
    assert make_command(Change(Action.EVICT, "shop/web-1")) == (
        'echo \'{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1", "namespace": "shop"}}\''
        " | kubectl create --raw /api/v1/namespaces/shop/pods/web-1/eviction -f -"
    )


def test_a_name_of_a_recorded_cluster_is_no_shell_command() -> None:
    command = make_command(Change(Action.EVICT, "shop/web;reboot"))
    assert command.endswith(" | kubectl create --raw '/api/v1/namespaces/shop/pods/web;reboot/eviction' -f -")


def test_nodes_are_cordoned_and_uncordoned() -> None:
    assert make_command(Change(Action.CORDON, "n1")) == "kubectl cordon n1"
    assert make_command(Change(Action.UNCORDON, "n1")) == "kubectl uncordon n1"


def test_an_eviction_may_have_the_uid_as_a_precondition() -> None:
    assert make_eviction("shop", "web-1", "u1")["deleteOptions"] == {"preconditions": {"uid": "u1"}}


def test_the_values_of_a_step_always_have_the_same_keys() -> None:
    placed = (PodPlacement("a/b", "n3"),)
    eviction = Step(Change(Action.EVICT, "shop/web"), "n1", "n2", ("n2", "n3"), placed).to_values()
    cordon = Step(Change(Action.CORDON, "n1")).to_values()
    assert eviction == {
        "action": "evict",
        "pod": "shop/web",
        "node": None,
        "from": "n1",
        "to": "n2",
        "equalNodes": ["n2", "n3"],
        "placed": [{"pod": "a/b", "node": "n3"}],
        "command": make_command(Change(Action.EVICT, "shop/web")),
    }
    assert eviction.keys() == cordon.keys()
    assert (cordon["node"], cordon["pod"], cordon["from"]) == ("n1", None, None)
