"""Pods are pending, assumed or assigned; the tables and snapshots follow."""

from typing import Any

import pytest

from extender.api.matching import NOTHING, selector_from_labels
from extender.cache.cache import AssumeError, Cache
from extender.cache.cluster_tables import ClusterTables
from extender.cache.tables.closed_tables import ClosedSnapshotError
from extender.cache.tables.pod_selectors import PodMatcher, PodSelector
from tests.build import make_cluster, make_node, make_pod
from tests.consistency import find_inconsistencies

CPU, MEMORY = 0, 1
APPS = ("web", "db")


def requested(cache: Cache, node: str) -> int:
    """Return the milli-CPU that the pods on *node* request."""
    snapshot = cache.snapshot()
    row = snapshot.row(node)
    assert row is not None
    return int(snapshot.view().requested(CPU)[row])


def test_a_pod_on_a_node_counts_there() -> None:
    cache = make_cluster(make_node("n1"), make_node("n2"), make_pod("web", node="n2", requests={"cpu": "300m"}))

    assert requested(cache, "n1") == 0
    assert requested(cache, "n2") == 300


def test_a_pending_pod_counts_nowhere() -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", requests={"cpu": "300m"}))

    assert requested(cache, "n1") == 0
    assert [pod.key for pod in cache.pending_pods.values()] == ["default/web"]


def test_sums_beyond_int64_wrap_around_and_are_restored() -> None:
    """As upstream's do, whose sums are int64 too; 9e18 + 9e18 - 2**64 = -446744073709551616."""
    huge = {"memory": "9000000000000000000"}
    first, second = make_pod("first", node="n1", requests=huge), make_pod("second", node="n1", requests=huge)
    cache = make_cluster(make_node("n1"), first, second)

    def memory() -> tuple[int, int]:
        nodes = cache.snapshot().view()
        return nodes.requested(MEMORY).item(0), nodes.nonzero_requested(1).item(0)

    assert memory() == (-446_744_073_709_551_616, -446_744_073_709_551_616)
    cache.remove_pod(second.metadata.uid)
    assert memory() == (9_000_000_000_000_000_000, 9_000_000_000_000_000_000)


def test_a_pod_may_request_resources_before_a_node_has_them() -> None:
    requests = {"cpu": "300m", "example.com/fpga": "1", "example.com/gpu": "2"}
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1", requests=requests))
    cache.add_or_update_node(make_node("n2", allocatable=requests))

    nodes = cache.snapshot().view()
    resources = nodes.snapshot.symbols.resources
    assert {name: nodes.requested(resources.intern(name)).item(0) for name in requests} == {
        "cpu": 300,
        "example.com/fpga": 1,
        "example.com/gpu": 2,
    }


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    pod = make_pod("web", requests={"cpu": "300m"})
    cache = make_cluster(make_node("n1"), pod)

    assumed_pod = cache.assume(pod, "n1")
    assert (assumed_pod.node_name, assumed_pod.assumed, requested(cache, "n1")) == ("n1", True, 300)
    assert cache.is_assumed(pod.metadata.uid)
    assert dict(cache.pending_pods) == {}

    cache.forget(pod)
    assert requested(cache, "n1") == 0
    assert list(cache.pending_pods) == [pod.metadata.uid]


def test_a_forgotten_pod_is_pending_as_it_was_last_updated() -> None:
    pod = make_pod("web")
    cache = make_cluster(make_node("n1"), pod)
    cache.assume(pod, "n1")

    cache.add_or_update_pod(make_pod("web", labels={"a": "b"}))
    assert cache.is_assumed(pod.metadata.uid)
    assert dict(cache.assigned_pods[pod.metadata.uid].labels) == {}

    cache.forget(pod)
    assert cache.pending_pods[pod.metadata.uid].metadata.labels == {"a": "b"}


def test_a_confirmed_pod_counts_once() -> None:
    pod = make_pod("web", requests={"cpu": "300m"})
    cache = make_cluster(make_node("n1"), pod)
    cache.assume(pod, "n1")

    cache.add_or_update_pod(make_pod("web", node="n1", requests={"cpu": "300m"}))

    assert requested(cache, "n1") == 300
    assert not cache.is_assumed(pod.metadata.uid)


PORTS = {"containers": [{"name": "app", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "300m"}}}]}
AFFINITY = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("changes", "milli_cpu"),
    [
        pytest.param({"labels": {"app": "web", "topology.kubernetes.io/zone": "a"}}, 300, id="labels of the node"),
        pytest.param({"labels": {"app": "db"}}, 300, id="another label"),
        pytest.param({"requests": {"cpu": "1"}}, 1000, id="other requests"),
        pytest.param({"spec": PORTS}, 300, id="a host port"),
        pytest.param({"spec": AFFINITY}, 300, id="anti-affinity"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z"}}, 300, id="deletion"),
    ],
)
def test_the_changes_of_a_pod_at_its_binding_are_counted(changes: dict[str, Any], milli_cpu: int) -> None:
    pod = make_pod("web", labels={"app": "web"}, requests={"cpu": "300m"})
    cache = make_cluster(make_node("n1"), pod)
    selected = {app: PodSelector(frozenset(("default",)), NOTHING, selector_from_labels({"app": app})) for app in APPS}

    def count_pods() -> dict[str, int]:
        with cache.read() as snapshot:
            counts = {app: snapshot.pod_counts(PodMatcher((selector,))) for app, selector in selected.items()}
            return {app: int(snapshot.counts_by_row(counts[app]).sum()) for app in APPS}

    cache.assume(pod, "n1")
    assert count_pods() == {"web": 1, "db": 0}

    bound_pod = make_pod("web", **({"labels": {"app": "web"}, "node": "n1", "requests": {"cpu": "300m"}} | changes))
    cache.add_or_update_pod(bound_pod)
    app = bound_pod.metadata.labels["app"]
    assert count_pods() == {"web": int(app == "web"), "db": int(app == "db")}
    assert requested(cache, "n1") == milli_cpu
    assert find_inconsistencies(cache.snapshot()) == []
    assert [pod.pod.metadata for pod in cache.snapshot().assigned_pods()] == [bound_pod.metadata]


def test_a_pod_that_was_bound_to_another_node_than_assumed_moves() -> None:
    """Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.AddPod (1.36)."""
    pod = make_pod("web", requests={"cpu": "300m"})
    cache = make_cluster(make_node("n1"), make_node("n2"), pod)
    cache.assume(pod, "n1")

    cache.add_or_update_pod(make_pod("web", node="n2", requests={"cpu": "300m"}))

    assert (requested(cache, "n1"), requested(cache, "n2")) == (0, 300)


def test_a_pod_cannot_be_assumed_twice() -> None:
    pod = make_pod("web")
    cache = make_cluster(make_node("n1"), make_node("n2"), pod)
    cache.assume(pod, "n1")

    with pytest.raises(AssumeError, match=r"pod default/web \(uid uid-default-web\) is on n1 already"):
        cache.assume(pod, "n2")


def test_forgetting_a_pod_that_is_not_assumed_does_nothing() -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1", requests={"cpu": "1"}))

    cache.forget(make_pod("web"))

    assert requested(cache, "n1") == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_frees_its_node(phase: str) -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1", requests={"cpu": "1"}))

    cache.add_or_update_pod(make_pod("web", node="n1", requests={"cpu": "1"}, status={"phase": phase}))

    assert requested(cache, "n1") == 0


def test_a_resized_pod_counts_with_its_new_size() -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1", requests={"cpu": "1"}))

    cache.add_or_update_pod(make_pod("web", node="n1", requests={"cpu": "250m"}))

    assert requested(cache, "n1") == 250


def test_pods_of_an_unknown_node_count_when_it_is_added() -> None:
    cache = make_cluster(make_pod("web", node="n1", requests={"cpu": "1"}))
    assert len(cache.snapshot()) == 0

    cache.add_or_update_node(make_node("n1"))

    assert requested(cache, "n1") == 1000


def test_pods_of_a_node_that_was_removed_and_added_again_count() -> None:
    """Source: pkg/scheduler/backend/cache/cache.go, cacheImpl.RemoveNode (1.36)."""
    cache = make_cluster(make_node("n1"), make_node("n2"), make_pod("web", node="n1", requests={"cpu": "1"}))

    cache.remove_node("n1")
    assert list(cache.snapshot().names) == ["n2"]
    assert find_inconsistencies(cache.snapshot()) == []

    cache.add_or_update_node(make_node("n1"))
    assert requested(cache, "n1") == 1000


def test_removing_a_node_moves_the_last_one_into_its_row() -> None:
    pods = [make_pod(f"p{i}", node=f"n{i}", requests={"cpu": f"{i}"}) for i in range(3)]
    cache = make_cluster(make_node("n0"), make_node("n1"), make_node("n2"), *pods)

    cache.remove_node("n0")

    assert list(cache.snapshot().names) == ["n2", "n1"]
    assert requested(cache, "n2") == 2000
    assert find_inconsistencies(cache.snapshot()) == []


def test_removing_an_unknown_node_or_pod_does_nothing() -> None:
    cache = make_cluster(make_node("n1"))

    cache.remove_node("n2")
    cache.remove_pod("nobody")

    assert list(cache.snapshot().names) == ["n1"]


def test_a_snapshot_does_not_see_later_writes() -> None:
    pod = make_pod("web", requests={"cpu": "1"})
    cache = make_cluster(make_node("n1"), pod)
    old = cache.snapshot()

    cache.assume(pod, "n1")
    cache.add_or_update_node(make_node("n2"))

    assert list(old.names) == ["n1"]
    assert old.view().requested(CPU).tolist() == [0]
    assert requested(cache, "n1") == 1000


def get_tables(cache: Cache) -> ClusterTables:
    with cache.read() as snapshot:
        return snapshot.tables


def test_a_write_after_a_read_scope_copies_nothing() -> None:
    cache = make_cluster(make_node("n1"))
    tables = get_tables(cache)
    cache.add_or_update_node(make_node("n2"))
    assert get_tables(cache) is tables
    assert list(cache.names) == ["n1", "n2"]


def test_a_write_in_a_read_scope_leaves_its_snapshot_as_it_is() -> None:
    cache = make_cluster(make_node("n1"))
    with cache.read() as snapshot:
        cache.add_or_update_node(make_node("n2"))
        assert list(snapshot.names) == ["n1"]
        assert list(cache.names) == ["n1", "n2"]
        with cache.read() as later_snapshot:
            assert list(later_snapshot.names) == ["n1", "n2"]
    tables = get_tables(cache)
    cache.add_or_update_node(make_node("n3"))
    assert get_tables(cache) is tables


def test_a_scope_inside_another_one_has_the_same_snapshot_and_does_not_end_it() -> None:
    cache = make_cluster(make_node("n1"))
    with cache.read() as snapshot:
        with cache.read() as inner_snapshot:
            assert inner_snapshot is snapshot
        cache.add_or_update_node(make_node("n2"))
        assert list(snapshot.names) == ["n1"]


def test_a_snapshot_without_a_time_limit_costs_one_copy() -> None:
    cache = make_cluster(make_node("n1"))
    snapshot = cache.snapshot()
    cache.add_or_update_node(make_node("n2"))
    tables = get_tables(cache)
    cache.add_or_update_node(make_node("n3"))
    assert get_tables(cache) is tables
    assert list(snapshot.names) == ["n1"]


def test_a_snapshot_cannot_be_used_after_its_scope_and_a_write() -> None:
    cache = make_cluster(make_node("n1"))
    with cache.read() as snapshot:
        pass
    cache.add_or_update_node(make_node("n2"))
    with pytest.raises(ClosedSnapshotError, match="nodes of a snapshot was read after its read scope"):
        len(snapshot)


def test_an_error_ends_the_read_scope() -> None:
    cache = make_cluster(make_node("n1"))
    tables = get_tables(cache)
    with pytest.raises(ValueError, match="x"), cache.read():
        raise ValueError("x")
    cache.add_or_update_node(make_node("n2"))
    assert get_tables(cache) is tables


def test_the_readers_of_the_cache_show_its_current_state() -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1"))
    assert (list(cache.names), cache.row("n1"), cache.row("n2")) == (["n1"], 0, None)
    assert [node.metadata.name for node in cache.nodes] == ["n1"]
    assert cache.get_node("n1") is cache.nodes[0]
    assert cache.get_node("n2") is None
    assert [pod.key for pod in cache.pods_on("n1").values()] == ["default/web"]


def test_two_snapshots_without_a_write_between_them_are_the_same() -> None:
    cache = make_cluster(make_node("n1"))
    first = cache.snapshot()

    assert cache.snapshot() is first


def test_a_pod_without_a_uid_is_identified_by_its_key() -> None:
    cache, pending = make_cluster(make_node("n1")), make_pod("web", metadata={"uid": ""}, requests={"cpu": "300m"})
    cache.add_or_update_pod(pending)
    cache.nominate(pending, "n1")
    assert cache.find_nominated_node("default/web") == "n1"
    cache.assume(pending, "n1")
    assert (list(cache.assigned_pods), list(cache.pending_pods)) == (["default/web"], [])
    cache.forget(pending)
    assert (list(cache.assigned_pods), list(cache.pending_pods)) == ([], ["default/web"])
    cache.add_or_update_pod(make_pod("web", metadata={"uid": ""}, node="n1", requests={"cpu": "200m"}))
    assert (list(cache.assigned_pods), list(cache.pending_pods)) == (["default/web"], [])
    assert requested(cache, "n1") == 200


def test_an_old_state_without_a_node_does_not_take_a_pod_off_its_node() -> None:
    cache = make_cluster(make_node("n1"), make_pod("web", node="n1", requests={"cpu": "300m"}))
    cache.add_or_update_pod(make_pod("web", requests={"cpu": "300m"}))
    assert (list(cache.assigned_pods), list(cache.pending_pods)) == (["uid-default-web"], [])
    assert requested(cache, "n1") == 300


def test_a_fork_and_its_cache_are_changed_independently() -> None:
    web, api = make_pod("web", node="n1", requests={"cpu": "300m"}), make_pod("api", requests={"cpu": "200m"})
    cache = make_cluster(make_node("n1"), make_node("n2"), web, api)
    fork = cache.fork()
    fork.assume(api, "n1")
    fork.remove_node("n2")
    cache.remove_pod(web.metadata.uid)
    assert (requested(cache, "n1"), list(cache.snapshot().names), len(cache.pending_pods)) == (0, ["n1", "n2"], 1)
    assert (requested(fork, "n1"), list(fork.snapshot().names), len(fork.pending_pods)) == (500, ["n1"], 0)
    assert find_inconsistencies(cache.snapshot()) == []
    assert find_inconsistencies(fork.snapshot()) == []


def list_nominations(cache: Cache) -> dict[str, list[str]]:
    snapshot = cache.snapshot()
    return {name: [pod.key for pod in snapshot.nominated_pods(name)] for name in ("n1", "n2")}


def test_a_pod_is_nominated_for_one_node_and_a_fork_changes_its_own_nominations() -> None:
    cache = make_cluster(make_node("n1"), make_node("n2"))
    first, second = make_pod("first"), make_pod("second")
    for pod in (first, second):
        cache.add_or_update_pod(pod)
        cache.nominate(pod, "n1")
    fork = cache.fork()
    fork.nominate(first, "n2")
    fork.nominate(second, "")
    assert list_nominations(fork) == {"n1": [], "n2": ["default/first"]}
    assert [fork.find_nominated_node(pod.metadata.uid) for pod in (first, second)] == ["n2", ""]
    assert list_nominations(cache) == {"n1": ["default/first", "default/second"], "n2": []}
    cache.nominate(first, "n1")
    assert list_nominations(cache) == {"n1": ["default/second", "default/first"], "n2": []}
