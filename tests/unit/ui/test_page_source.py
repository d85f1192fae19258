"""The cluster behind the pages."""

from collections.abc import Callable

import msgspec
import pytest
from fastapi.testclient import TestClient

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import parse_recording
from extender.api.codec import from_builtins
from extender.api.kinds.storage import StorageClass
from extender.app import wiring
from extender.cache.cache import Cache
from extender.ui.page_source import ClusterAccess, PageSource, RecordedSource, get_entries_per_page
from extender.ui.pages import make_app
from extender.ui.pod_view import make_pod_view
from tests.build import make_node, make_pod

TOO_LARGE = (
    "the pod is too large to schedule: spec: nodeSelector, affinity, topologySpreadConstraints and tolerations have "
    "more than 1000 fields or 262144 bytes"
)


class Cluster:
    """A cache with a node of four CPUs, a bound pod and an assumed pod; time stands still until it is set."""

    def __init__(self) -> None:
        self.cache, self.now, self.profiles = Cache(), 0.0, dict(wiring.build_setup().profiles)
        self.cache.add_or_update_node(make_node("n1", allocatable={"cpu": "4", "pods": "10"}))
        self.cache.add_or_update_pod(make_pod("bound", node="n1", requests={"cpu": "3"}))
        self.cache.add_or_update_pod(make_pod("assumed", requests={"cpu": "1"}))
        self.cache.assume(make_pod("assumed", requests={"cpu": "1"}), "n1")
        self.source = PageSource("a", self.cache, lambda: self.profiles, wiring.make_runtime, lambda: self.now)

    def requested(self) -> list[int]:
        view = self.cache.snapshot().view()
        return view.requested(self.cache.snapshot().symbols.resources.intern("cpu")).tolist()


def test_a_pending_pod_is_explained_on_the_current_state() -> None:
    cluster = Cluster()
    cluster.cache.add_or_update_pod(make_pod("big", requests={"cpu": "1"}))
    pod, report = cluster.source.explain("default/big")
    assert (pod.key, report.fits) == ("default/big", False)
    assert report.to_values()["nodes"]["n1"]["firstFailure"]["reasons"] == ["Insufficient cpu"]
    cluster.cache.remove_pod(next(iter(cluster.cache.assigned_pods)))
    assert cluster.source.explain("default/big")[1].fits


@pytest.mark.parametrize("node", ["", "n1"], ids=["pending", "assigned"])
def test_a_pod_above_a_limit_is_not_evaluated(node: str) -> None:
    cluster = Cluster()
    cluster.cache.add_or_update_pod(make_pod("large", node=node, spec={"tolerations": [{}] * 1_001}))
    pod, report = cluster.source.explain("default/large")
    assert report.explanation.message == TOO_LARGE
    assert (report.to_values()["nodes"], report.has_error) == ({}, True)
    assert make_pod_view(report, pod).headline.startswith("is on node n1" if node else "is not scheduled: an error")


def test_waiting_pods_above_a_limit_have_the_limit_as_their_reason() -> None:
    cluster = Cluster()
    cluster.cache.add_or_update_pod(make_pod("large", spec={"tolerations": [{}] * 1_001}))
    (pods,) = cluster.source.get_state().waiting_pods
    assert cluster.source.describe_waiting_pods(pods).message == TOO_LARGE


@pytest.mark.parametrize("name", ["bound", "assumed"])
def test_an_assigned_pod_is_explained_without_a_write_to_the_cache(name: str) -> None:
    cluster = Cluster()
    before, write_count = cluster.requested(), cluster.cache.write_count
    _, report = cluster.source.explain(f"default/{name}")
    values = report.to_values()
    assert values["assigned"]["node"] == "n1"
    assert values["feasible"] == ["n1"]
    assert cluster.requested() == before == [4000]
    assert cluster.cache.is_assumed(make_pod("assumed").metadata.uid)
    assert cluster.cache.write_count == write_count


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("default/none", 'there is no such pod in namespace "default", or it has finished'),
        ("default/bond", r'there is no such pod in namespace "default"; did you mean default/bound\?'),
        ("shop/bound", r'there is no such pod in namespace "shop"; did you mean default/bound\?'),
        ("default/other", 'waits for scheduler "another", which has no profile here'),
    ],
)
def test_a_pod_that_cannot_be_explained_is_an_error(key: str, message: str) -> None:
    cluster = Cluster()
    cluster.cache.add_or_update_pod(make_pod("other", spec={"schedulerName": "another"}))
    with pytest.raises(InputError, match=message):
        cluster.source.explain(key)


def test_the_waiting_pods_are_those_of_the_profiles_in_groups_that_are_alike() -> None:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.cache.add_or_update_pod(make_pod(name, requests={"cpu": "2"}))
    cluster.cache.add_or_update_pod(make_pod("other", spec={"schedulerName": "another"}))
    (group,) = cluster.source.get_state().waiting_pods
    assert cluster.source.describe_waiting_pods(group).keys == ("default/a", "default/b")


def test_the_pages_of_the_whole_cluster_are_made_again_after_five_seconds() -> None:
    cluster = Cluster()
    first = cluster.source.get_state().cluster_document
    cluster.cache.add_or_update_node(make_node("n2"))
    cluster.now = 4.9
    assert cluster.source.get_state().cluster_document is first
    cluster.now = 5.0
    assert msgspec.json.decode(cluster.source.get_state().cluster_document)["nodes"] == ["n1", "n2"]
    assert cluster.source.get_state().cluster_values["totals"][0]["requested"] == "4"


def test_the_heading_of_the_page_cluster_counts_the_nodes_of_its_map() -> None:
    cluster = Cluster()
    client = TestClient(make_app(cluster.source))
    assert "<h1>1 node</h1>" in client.get("/ui/").text
    cluster.cache.add_or_update_node(make_node("n2"))
    assert "<h1>1 node</h1>" in client.get("/ui/").text
    assert client.get("/ui/data/cluster").json()["nodes"] == ["n1"]
    cluster.now = 5.0
    assert "<h1>2 nodes</h1>" in client.get("/ui/").text
    assert client.get("/ui/data/cluster").json()["nodes"] == ["n1", "n2"]


def test_the_search_knows_the_node_of_each_pod() -> None:
    cluster = Cluster()
    cluster.cache.add_or_update_pod(make_pod("waits"))
    assert cluster.source.get_node_names() == {
        "default/waits": "",
        "default/bound": "n1",
        "default/assumed": "n1",
    }


def test_pending_pods_of_other_schedulers_are_listed_and_change_the_version() -> None:
    cluster = Cluster()
    first = cluster.source.get_state().version
    cluster.cache.add_or_update_pod(make_pod("other", spec={"schedulerName": "nobody"}))
    cluster.now = 5.0
    assert [pod.key for pod in cluster.source.list_pods_of_other_schedulers()] == ["default/other"]
    assert (cluster.source.get_state().version, cluster.source.get_state().waiting_pods) == (first + 1, [])


def test_the_version_changes_with_the_cluster_but_not_with_time() -> None:
    cluster = Cluster()
    source = cluster.source
    first = source.get_state().version
    assert source.get_state().number == 0
    cluster.now = 5.0
    assert (source.get_state().number, source.get_state().version) == (1, first)
    cluster.cache.add_or_update_node(make_node("n2"))
    assert source.get_state().version == first
    cluster.now = 10.0
    assert (source.get_state().number, source.get_state().version) == (2, first + 1)


def test_a_restarted_process_shows_another_version() -> None:
    """Otherwise a page that stays open would take the state before the restart for the current one."""
    assert Cluster().source.get_state().version != Cluster().source.get_state().version


def change_waiting_pods(cluster: Cluster) -> None:
    cluster.cache.add_or_update_pod(make_pod("waits"))


def change_object(cluster: Cluster) -> None:
    cluster.cache.add_or_update_object(from_builtins({"metadata": {"name": "a"}}, StorageClass))


def change_profiles(cluster: Cluster) -> None:
    cluster.profiles = {}


@pytest.mark.parametrize("change", [change_waiting_pods, change_object, change_profiles])
def test_each_change_that_a_page_could_show_has_a_version(change: Callable[[Cluster], None]) -> None:
    cluster = Cluster()
    first = cluster.source.get_state().version
    change(cluster)
    cluster.now = 5.0
    assert cluster.source.get_state().version == first + 1


def test_a_fork_of_the_cluster_is_changed_without_a_write_to_the_cache() -> None:
    cluster = Cluster()
    fork = cluster.source.fork_cache()
    fork.remove_node("n1")
    assert (len(fork.snapshot()), len(cluster.cache.snapshot())) == (0, 1)
    assert sorted(pod.key for pod in cluster.source.list_pods()) == ["default/assumed", "default/bound"]


def test_an_explanation_names_the_kinds_that_it_needs_and_that_could_not_be_read() -> None:
    cluster = Cluster()
    unreadable = {"PersistentVolumeClaim": "grant it", "ResourceClaim": "grant it"}
    access = ClusterAccess("--context a", lambda: ["a problem"], lambda: unreadable)
    source = PageSource("a", cluster.cache, lambda: cluster.profiles, wiring.make_runtime, lambda: cluster.now, access)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.cache.add_or_update_pod(make_pod("waits", spec={"volumes": volumes}))
    values = source.explain("default/waits")[1].to_values()
    assert values["notRecorded"] == ["persistentvolumeclaims"]
    assert values["warnings"] == ["not readable: persistentvolumeclaims; grant it"]
    assert source.explain("default/bound")[1].to_values()["notRecorded"] == []
    assert (source.command_options, source.list_problems()) == ("--context a", ["a problem"])


def test_a_problem_of_the_watches_changes_the_version() -> None:
    cluster, problems = Cluster(), list[str]()
    access = ClusterAccess(list_problems=lambda: problems)
    source = PageSource("a", cluster.cache, lambda: cluster.profiles, wiring.make_runtime, lambda: cluster.now, access)
    first = source.get_state().version
    problems.append("lost")
    cluster.now = 5.0
    assert source.get_state().version == first + 1


@pytest.mark.parametrize(("node_count", "entries"), [(0, 200), (12, 200), (1000, 100), (5000, 20), (50_000, 10)])
def test_a_page_of_waiting_pods_is_shorter_for_a_larger_cluster(node_count: int, entries: int) -> None:
    assert get_entries_per_page(node_count) == entries


def make_source(text: str) -> RecordedSource:
    setup = wiring.build_setup()
    return RecordedSource(parse_recording(text.encode(), "cluster.yaml"), setup.profiles, wiring.make_runtime())


def test_explaining_a_placed_pod_does_not_change_the_cluster(demo_source: RecordedSource) -> None:
    before = demo_source.get_snapshot().view().requested(0).tolist()
    first = demo_source.explain("shop/api-7f4b-c6jd2")[1].to_values()
    assert demo_source.get_snapshot().view().requested(0).tolist() == before
    assert demo_source.explain("shop/api-7f4b-c6jd2")[1].to_values() == first


@pytest.mark.parametrize("key", ["shop/none", "none/api-7f4b-g3ypl"])
def test_an_unknown_pod_is_an_error(demo_source: RecordedSource, key: str) -> None:
    with pytest.raises(InputError, match="there is no such pod"):
        demo_source.explain(key)


def test_labels_in_the_document_show_unprintable_characters_as_escapes() -> None:
    nodes = [
        f'{{apiVersion: v1, kind: Node, metadata: {{name: n{number}}}, spec: {{taints: [{{key: db, value: "{value}",'
        " effect: NoSchedule}]}}"
        for number, value in enumerate((r"x\u202ey", "plain"))
    ]
    document = msgspec.json.decode(make_source("\n---\n".join(nodes)).get_state().cluster_document)
    assert document["groups"]["taints"]["values"] == ["db=plain:NoSchedule", "db=x\\u202ey:NoSchedule"]
