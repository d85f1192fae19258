"""Workloads with a new number of pods: copies that are added, and surplus pods that are removed."""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.planning.scaling import calculate_pod_changes
from extender.planning.scenario import Scale, ScenarioError
from tests.unit.planning.clusters import make_cache, node, pod


def owned(name: str, owner: str, owner_name: str, on: str = "", created: str = "", **labels: str) -> dict[str, Any]:
    body = pod(name, on=on, owner=owner, labels=labels)
    body["metadata"]["ownerReferences"][0]["name"] = owner_name
    if created:
        body["metadata"]["creationTimestamp"] = created
    return body


def make_deployment_cluster() -> Cache:
    """Three pods of deployment web, two of them on n1, and one of deployment web-other."""
    return make_cache(
        node("n1"),
        node("n2"),
        owned("web-5f-a", "ReplicaSet", "web-5f", "n1", "2026-01-01T00:00:00Z", **{"pod-template-hash": "5f"}),
        owned("web-5f-b", "ReplicaSet", "web-5f", "n1", "2026-01-02T00:00:00Z", **{"pod-template-hash": "5f"}),
        owned("web-5f-c", "ReplicaSet", "web-5f", "n2", "2026-01-03T00:00:00Z", **{"pod-template-hash": "5f"}),
        owned("web-other-7a-a", "ReplicaSet", "web-other-7a", "n2", **{"pod-template-hash": "7a"}),
    )


def test_copies_are_added_with_new_names() -> None:
    changes = calculate_pod_changes(Scale("deployment", "default", "web", 5), make_deployment_cluster())
    assert [new_pod.metadata.name for new_pod in changes.added] == ["web-new-0", "web-new-1"]
    assert [new_pod.spec.node_name for new_pod in changes.added] == ["", ""]
    assert (changes.surplus, changes.surplus_pending) == ((), ())


def test_pods_on_crowded_nodes_are_removed_first_and_newer_pods_before_older_ones() -> None:
    changes = calculate_pod_changes(Scale("deployment", "default", "web", 1), make_deployment_cluster())
    assert [old_pod.key for old_pod in changes.surplus] == ["default/web-5f-b", "default/web-5f-a"]
    assert changes.added == ()


def test_the_owner_of_a_recorded_replica_set_decides() -> None:
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": "odd-name",
            "namespace": "default",
            "ownerReferences": [
                {"kind": "Deployment", "name": "web", "uid": "d", "apiVersion": "apps/v1", "controller": True}
            ],
        },
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
    }
    cache = make_cache(node("n1"), owned("p", "ReplicaSet", "odd-name", "n1"), replica_set)
    changes = calculate_pod_changes(Scale("deployment", "default", "web", 0), cache)
    assert [old_pod.key for old_pod in changes.surplus] == ["default/p"]


def test_a_pending_pod_is_removed_before_pods_on_nodes() -> None:
    cache = make_cache(node("n1"), owned("a", "ReplicaSet", "rs", "n1"), owned("b", "ReplicaSet", "rs"))
    changes = calculate_pod_changes(Scale("replicaset", "default", "rs", 1), cache)
    assert ([old_pod.key for old_pod in changes.surplus_pending], changes.surplus) == (["default/b"], ())


def test_a_stateful_set_removes_the_highest_ordinals_and_continues_the_names() -> None:
    pods = [owned(f"db-{number}", "StatefulSet", "db", "n1") for number in (0, 2, 10)]
    cache = make_cache(node("n1"), *pods)
    down = calculate_pod_changes(Scale("statefulset", "default", "db", 1), cache)
    up = calculate_pod_changes(Scale("statefulset", "default", "db", 5), cache)
    assert [old_pod.key for old_pod in down.surplus] == ["default/db-10", "default/db-2"]
    assert [new_pod.metadata.name for new_pod in up.added] == ["db-1", "db-3"]


def test_a_workload_without_pods_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ScenarioError) as caught:
        calculate_pod_changes(Scale("deployment", "default", "wep", 1), make_deployment_cluster())
    assert caught.value.errors == (
        '--scale deployment/wep: namespace default has no pod of this workload; did you mean "deployment/web"?',
    )
