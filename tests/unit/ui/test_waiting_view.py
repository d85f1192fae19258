"""The contents of the page Waiting pods."""

from datetime import UTC, datetime, timedelta

import pytest

from extender.ui.page_source import RecordedSource
from extender.ui.waiting_view import AlikePods, find_waiting_start, format_age, format_owner, group_by_reason
from tests.build import make_pod


def make_entry(reason: str, *keys: str) -> AlikePods:
    return AlikePods(keys, reason, "", "", "", None, "", "", ())


def test_reasons_with_most_pods_come_first() -> None:
    entries = [make_entry("cpu", "a/1"), make_entry("taint", "a/2", "a/3"), make_entry("cpu", "a/4", "a/5", "a/6")]
    groups = group_by_reason(entries)
    assert [(group.reason, group.pod_count) for group in groups] == [("cpu", 4), ("taint", 2)]
    assert [pods.keys[0] for pods in groups[0].pods] == ["a/4", "a/1"]


def test_a_pod_waits_since_its_condition_became_false() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": "2026-11-23T11:00:00Z",
    }
    created = {"creationTimestamp": "2026-11-23T10:00:00Z"}
    tried = make_pod("a", metadata=created, status={"phase": "Pending", "conditions": [condition]})
    assert find_waiting_start([tried]) == (datetime(2026, 11, 23, 11, tzinfo=UTC), "Unschedulable")


def test_a_pod_without_the_condition_waits_since_it_was_created() -> None:
    pods = [make_pod(name, metadata={"creationTimestamp": f"2026-11-23T1{hour}:00:00Z"}) for name, hour in ("a3", "b2")]
    assert find_waiting_start(pods) == (datetime(2026, 11, 23, 12, tzinfo=UTC), "created")
    assert find_waiting_start([make_pod("a")]) == (None, "")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_that_utc_cannot_represent_is_shown_without_its_time_zone(text: str) -> None:
    pod = make_pod("a", metadata={"creationTimestamp": text})
    assert find_waiting_start([pod]) == (datetime.fromisoformat(text).replace(tzinfo=UTC), "created")


def test_the_owner_is_the_controller() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Node", "name": "other", "uid": "1"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7f", "uid": "2", "controller": True},
    ]
    pod = make_pod("web", namespace="shop", metadata={"ownerReferences": owners})
    assert format_owner(pod) == "ReplicaSet shop/web-7f"
    assert format_owner(make_pod("web")) == ""


def test_the_demo_s_pods_wait_for_these_reasons(demo_source: RecordedSource) -> None:
    entries = [demo_source.describe_waiting_pods(pods) for pods in demo_source.get_state().waiting_pods]
    assert {pods.keys[0]: pods.reason for pods in entries} == {
        "shop/api-7f4b-g3ypl": "a node fits now",
        "ml/trainer-2": "a node fits now",
        "batch/month-end": "Insufficient cpu, Insufficient memory (NodeResourcesFit)",
        "ml/notebook": "Insufficient nvidia.com/gpu (NodeResourcesFit)",
        "shop/frontend-5d8c-k7wzd": "node(s) didn't match pod topology spread constraints (PodTopologySpread)",
        "shop/cache-66d9-qm9rb": "node(s) didn't match pod anti-affinity rules (InterPodAffinity)",
        "ingress/gateway-canary": "node(s) didn't match Pod's node affinity/selector (NodeAffinity)",
        "batch/import": "not enqueued (SchedulingGates)",
    }


def test_an_entry_says_what_would_help(demo_source: RecordedSource) -> None:
    entries = {
        pods.keys[0]: pods for pods in map(demo_source.describe_waiting_pods, demo_source.get_state().waiting_pods)
    }
    entry = entries["shop/frontend-5d8c-k7wzd"]
    assert entry.near_miss_node == "general-c1"
    assert entry.near_miss_lines == ("Insufficient cpu: wants 500m, but only 400m are free (100m short)",)
    assert entry.owner == "ReplicaSet shop/frontend-5d8c"
    assert (entry.since, entry.event) == (datetime(2026, 2, 28, 9, 4, tzinfo=UTC), "created")
    assert entries["shop/api-7f4b-g3ypl"].near_miss_lines == ()
    assert entries["shop/api-7f4b-g3ypl"].summary == (
        "fits on 6 of 12 nodes, but not on the others: 3 nodes have taints that it does not tolerate, "
        "2 nodes have too little cpu, 1 node is cordoned"
    )
    assert entries["batch/import"].message == "waiting for scheduling gates: [example.com/quota]"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_an_age_has_two_units(seconds: int, text: str) -> None:
    start = datetime(2026, 11, 23, 11, tzinfo=UTC)
    assert format_age(start, start + timedelta(seconds=seconds)) == text
