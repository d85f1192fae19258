"""The checks of histories find the violations in histories written by hand."""

from typing import Any

from tests.scheduling_history import (
    Binding,
    History,
    LeaseRenewal,
    ObjectState,
    filter_by_actors,
    find_bindings_without_lease,
    find_double_bindings,
    find_overcommitted_nodes,
    find_unbound_pods,
    find_violations,
)


def pod(revision: int, name: str, node: str = "", cpu: str = "1", phase: str = "Pending") -> ObjectState:
    container = {"name": "app", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container], **({"nodeName": node} if node else {})}
    manifest = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, "status": {"phase": phase}}
    return ObjectState(revision, "Pod", f"shop/{name}", manifest)


def node(revision: int, cpu: str, pods: str = "10") -> ObjectState:
    status = {"allocatable": {"cpu": cpu, "pods": pods}}
    return ObjectState(revision, "Node", "n", {"metadata": {"name": "n"}, "spec": {}, "status": status})


def lease(revision: int, holder: str) -> ObjectState:
    return ObjectState(revision, "Lease", "kube-system/kube-scheduler", {"spec": {"holderIdentity": holder}})


def test_a_pod_that_is_assigned_to_a_second_node_is_bound_twice() -> None:
    history = History([pod(1, "a"), pod(2, "a", "n"), pod(3, "a", "n"), pod(4, "a", "m")])
    assert find_double_bindings(history) == ["uid-a: on n, then m"]


def test_a_binding_that_is_accepted_twice_is_a_double_binding() -> None:
    bindings = [Binding("one", "uid-a", 1.0), Binding("two", "uid-a", 2.0)]
    assert find_double_bindings(History([pod(1, "a"), pod(2, "a", "n")], bindings)) == ["uid-a: bound 2 times"]


def test_a_recreated_pod_with_the_same_name_is_another_pod() -> None:
    other = pod(4, "a", "m").object
    assert other is not None
    recreated = ObjectState(4, "Pod", "shop/a", {**other, "metadata": {"name": "a", "uid": "uid-other"}})
    assert (
        find_double_bindings(History([pod(1, "a"), pod(2, "a", "n"), ObjectState(3, "Pod", "shop/a", None), recreated]))
        == []
    )


def test_a_node_with_more_requests_or_pods_than_it_offers_is_overcommitted() -> None:
    assert find_overcommitted_nodes(History([node(1, "1500m"), pod(2, "a", "n"), pod(3, "b"), pod(4, "b", "n")])) == [
        "shop/b on n at 4: 2000 cpu of 1500"
    ]
    assert find_overcommitted_nodes(History([node(1, "8", pods="1"), pod(2, "a", "n"), pod(3, "b", "n")])) == [
        "shop/b on n at 3: 2 pods of 1"
    ]


def test_deleted_and_finished_pods_free_their_resources() -> None:
    deleted = [pod(2, "a", "n"), ObjectState(3, "Pod", "shop/a", None), pod(4, "b", "n")]
    finished = [pod(2, "a", "n"), pod(3, "a", "n", phase="Succeeded"), pod(4, "b", "n")]
    assert find_overcommitted_nodes(History([node(1, "1"), *deleted])) == []
    assert find_overcommitted_nodes(History([node(1, "1"), *finished])) == []


def test_a_pod_on_an_unknown_node_is_a_violation() -> None:
    assert find_overcommitted_nodes(History([pod(1, "a", "n")])) == [
        "shop/a on n at 1: 1000 cpu of 0",
        "shop/a on n at 1: 1 pods of 0",
    ]


def test_pods_without_a_node_at_the_end_are_unbound() -> None:
    states = [pod(1, "a"), pod(2, "b"), pod(3, "c"), pod(4, "b", "n"), ObjectState(5, "Pod", "shop/c", None)]
    assert find_unbound_pods(History(states)) == ["shop/a"]


RENEWALS = [LeaseRenewal("one", "x", 10.0), LeaseRenewal("two", "y", 30.0)]


def test_bindings_by_the_lease_holder_are_allowed() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), lease(3, "y"), pod(4, "b", "n")]
    bindings = [Binding("one", "uid-a", 19.0), Binding("two", "uid-b", 31.0)]
    assert find_bindings_without_lease(History(states, bindings, RENEWALS), 10.0) == []


def test_a_binding_after_another_scheduler_acquired_the_lease_is_a_violation() -> None:
    states = [lease(1, "x"), lease(2, "y"), pod(3, "a", "n")]
    assert find_bindings_without_lease(History(states, [Binding("one", "uid-a", 11.0)], RENEWALS), 10.0) == [
        "shop/a: bound by one while two led"
    ]


def test_a_binding_after_the_lease_was_released_is_a_violation() -> None:
    states = [lease(1, "x"), lease(2, ""), pod(3, "a", "n")]
    renewals = [LeaseRenewal("one", "x", 10.0), LeaseRenewal("one", "", 11.0)]
    assert find_bindings_without_lease(History(states, [Binding("one", "uid-a", 12.0)], renewals), 10.0) == [
        "shop/a: bound by one while nobody led",
        "uid-a: sent by one after one wrote the lease",
    ]


def test_a_binding_after_the_lease_expired_is_a_violation() -> None:
    states = [lease(1, "x"), pod(2, "a", "n")]
    assert find_bindings_without_lease(History(states, [Binding("one", "uid-a", 21.0)], RENEWALS), 10.0) == [
        "uid-a: sent by one 11.0 s after its last renewal"
    ]


def test_a_rejected_binding_without_the_lease_is_a_violation() -> None:
    bindings = [Binding("one", "uid-a", 31.0, accepted=False)]
    history = History([lease(1, "x"), lease(2, "y")], bindings, RENEWALS)
    assert find_bindings_without_lease(history, 10.0) == ["uid-a: sent by one after two wrote the lease"]
    assert find_double_bindings(history) == []


def test_a_stored_binding_belongs_to_its_sender_despite_an_error_response() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), pod(3, "b", "n")]
    bindings = [Binding("one", "uid-a", 11.0, accepted=False)]
    bindings += [Binding("one", "uid-b", 11.0), Binding("two", "uid-b", 12.0, accepted=False)]
    assert find_bindings_without_lease(History(states, bindings, RENEWALS), 10.0) == [
        "uid-b: sent by two after one wrote the lease",
    ]


def test_an_assignment_without_a_binding_is_a_violation() -> None:
    assert find_bindings_without_lease(History([pod(1, "a", "n")]), 10.0) == [
        "shop/a: bound by nobody known while nobody led"
    ]


def test_a_history_can_be_filtered_by_actors() -> None:
    states = [lease(1, "x"), pod(2, "a", "n"), pod(3, "b", "n")]
    bindings = [Binding("one", "uid-a", 11.0), Binding("free", "uid-b", 11.0)]
    history = filter_by_actors(History(states, bindings, RENEWALS), {"one"})
    assert (history.states, history.bindings) == (states[:2], bindings[:1])
    assert find_bindings_without_lease(history, 10.0) == []


def test_all_checks_run_together() -> None:
    history = History([node(1, "1"), pod(2, "a", "n"), pod(3, "b", "n"), pod(4, "c")])
    assert find_violations(history) == ["shop/b on n at 3: 2000 cpu of 1000", "shop/c"]
    assert find_violations(history, 10.0)[2:] == [
        "shop/a: bound by nobody known while nobody led",
        "shop/b: bound by nobody known while nobody led",
    ]
