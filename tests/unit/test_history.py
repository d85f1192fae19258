"""The checks of histories find what they look for; their histories are written by hand."""

from typing import Any

from tests.history import Binding, History, Renewal, State, bound_by, bound_twice, out_of_turn, overfull, waiting, wrong


def pod(revision: int, name: str, node: str = "", cpu: str = "1", phase: str = "Pending") -> State:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container], **({"nodeName": node} if node else {})}
    thing = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, "status": {"phase": phase}}
    return State(revision, "Pod", f"shop/{name}", thing)


def node(revision: int, cpu: str, pods: str = "10") -> State:
    status = {"allocatable": {"cpu": cpu, "pods": pods}}
    return State(revision, "Node", "n", {"metadata": {"name": "n"}, "spec": {}, "status": status})


def lease(revision: int, holder: str) -> State:
    return State(revision, "Lease", "kube-system/kube-scheduler", {"spec": {"holderIdentity": holder}})


def test_a_pod_that_comes_to_a_second_node_is_bound_twice() -> None:
    history = History([pod(1, "a"), pod(2, "a", "n"), pod(3, "a", "n"), pod(4, "a", "m")])
    assert bound_twice(history) == ["uid-a: on n, then m"]


def test_a_binding_accepted_twice_is_told_although_the_pod_stays() -> None:
    sent = [Binding("one", "uid-a", 1.0), Binding("two", "uid-a", 2.0)]
    assert bound_twice(History([pod(1, "a"), pod(2, "a", "n")], sent)) == ["uid-a: bound 2 times"]


def test_a_pod_made_again_under_its_name_is_another() -> None:
    other = pod(4, "a", "m").thing
    assert other is not None
    again = State(4, "Pod", "shop/a", {**other, "metadata": {"name": "a", "uid": "uid-other"}})
    assert bound_twice(History([pod(1, "a"), pod(2, "a", "n"), State(3, "Pod", "shop/a", None), again])) == []


def test_a_node_given_more_cpu_or_pods_than_it_has_is_overfull() -> None:
    assert overfull(History([node(1, "1500m"), pod(2, "a", "n"), pod(3, "b"), pod(4, "b", "n")])) == [
        "shop/b on n at 4: 2000 cpu of 1500"
    ]
    assert overfull(History([node(1, "8", pods="1"), pod(2, "a", "n"), pod(3, "b", "n")])) == [
        "shop/b on n at 3: 2 pods of 1"
    ]


def test_room_of_pods_that_are_gone_or_done_can_be_given_again() -> None:
    gone = [pod(2, "a", "n"), State(3, "Pod", "shop/a", None), pod(4, "b", "n")]
    done = [pod(2, "a", "n"), pod(3, "a", "n", phase="Succeeded"), pod(4, "b", "n")]
    assert overfull(History([node(1, "1"), *gone])) == []
    assert overfull(History([node(1, "1"), *done])) == []


def test_a_pod_on_a_node_nobody_knows_has_no_room() -> None:
    assert overfull(History([pod(1, "a", "n")])) == ["shop/a on n at 1: 1000 cpu of 0", "shop/a on n at 1: 1 pods of 0"]


def test_pods_on_no_node_in_the_end_are_waiting() -> None:
    states = [pod(1, "a"), pod(2, "b"), pod(3, "c"), pod(4, "b", "n"), State(5, "Pod", "shop/c", None)]
    assert waiting(History(states)) == ["shop/a"]


RENEWALS = [Renewal("one", "x", 10.0), Renewal("two", "y", 30.0)]


def test_bindings_by_the_leader_are_in_turn() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), lease(3, "y"), pod(4, "b", "n")]
    sent = [Binding("one", "uid-a", 19.0), Binding("two", "uid-b", 31.0)]
    assert out_of_turn(History(states, sent, RENEWALS), 10.0) == []


def test_a_binding_after_another_took_the_lease_is_out_of_turn_whatever_clocks_say() -> None:
    states = [lease(1, "x"), lease(2, "y"), pod(3, "a", "n")]
    assert out_of_turn(History(states, [Binding("one", "uid-a", 11.0)], RENEWALS), 10.0) == [
        "shop/a: bound by one while two led"
    ]


def test_a_binding_under_a_lease_that_was_given_up_is_out_of_turn() -> None:
    states = [lease(1, "x"), lease(2, ""), pod(3, "a", "n")]
    renewals = [Renewal("one", "x", 10.0), Renewal("one", "", 11.0)]
    assert out_of_turn(History(states, [Binding("one", "uid-a", 12.0)], renewals), 10.0) == [
        "shop/a: bound by one while nobody led",
        "uid-a: sent by one after one wrote the lease",
    ]


def test_a_binding_long_after_the_last_renewal_is_out_of_turn() -> None:
    states = [lease(1, "x"), pod(2, "a", "n")]
    assert out_of_turn(History(states, [Binding("one", "uid-a", 21.0)], RENEWALS), 10.0) == [
        "uid-a: sent by one 11.0 s after its last renewal"
    ]


def test_a_binding_that_was_refused_is_out_of_turn_as_well() -> None:
    sent = [Binding("one", "uid-a", 31.0, accepted=False)]
    history = History([lease(1, "x"), lease(2, "y")], sent, RENEWALS)
    assert out_of_turn(history, 10.0) == ["uid-a: sent by one after two wrote the lease"]
    assert bound_twice(history) == []


def test_a_binding_that_was_carried_out_though_its_sender_heard_of_an_error_is_the_sender_s() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), pod(3, "b", "n")]
    sent = [Binding("one", "uid-a", 11.0, accepted=False)]
    sent += [Binding("one", "uid-b", 11.0), Binding("two", "uid-b", 12.0, accepted=False)]
    assert out_of_turn(History(states, sent, RENEWALS), 10.0) == [
        "uid-b: sent by two after one wrote the lease",
    ]


def test_a_placement_without_a_binding_is_told() -> None:
    assert out_of_turn(History([pod(1, "a", "n")]), 10.0) == ["shop/a: bound by nobody known while nobody led"]


def test_only_some_may_be_judged() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), pod(3, "b", "n")]
    sent = [Binding("one", "uid-a", 11.0), Binding("free", "uid-b", 11.0)]
    history = bound_by(History(states, sent, RENEWALS), {"one"})
    assert (history.states, history.bindings) == (states[:2], sent[:1])
    assert out_of_turn(history, 10.0) == []


def test_all_checks_at_once() -> None:
    history = History([node(1, "1"), pod(2, "a", "n"), pod(3, "b", "n"), pod(4, "c")])
    assert wrong(history) == ["shop/b on n at 3: 2000 cpu of 1000", "shop/c"]
    assert wrong(history, 10.0)[2:] == [
        "shop/a: bound by nobody known while nobody led",
        "shop/b: bound by nobody known while nobody led",
    ]
