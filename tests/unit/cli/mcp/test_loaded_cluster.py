"""When a cluster is read again."""

from extender.analysis.recorded_cluster import parse_recording
from extender.app import wiring
from extender.cli.mcp.loaded_cluster import ClusterSource, LoadedCluster
from extender.cli.recording_options import Cluster
from extender.planning.scenario import Scenario
from tests.unit.planning.clusters import as_list, node, pod


class FixedClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> float:
        raise AssertionError


def read() -> Cluster:
    text = as_list([node("n1"), node("n2"), pod("a", on="n1"), pod("b")])
    return Cluster(parse_recording(text.encode(), "test"), wiring.build_setup())


def test_a_recording_is_read_once() -> None:
    clock = FixedClock()
    source = ClusterSource(read, clock)
    first = source.get()
    clock.time += 1_000_000
    assert source.get() is first


def test_a_live_cluster_is_read_again_when_it_is_too_old() -> None:
    clock = FixedClock()
    source = ClusterSource(read, clock, max_age=30)
    first = source.get()
    clock.time += 30
    assert source.get() is first
    clock.time += 1
    assert source.get() is not first


def test_a_discarded_cluster_is_read_again() -> None:
    source = ClusterSource(read, FixedClock())
    first = source.get()
    source.discard()
    assert source.get() is not first


def test_questions_that_change_the_cluster_leave_it_as_it_was() -> None:
    loaded = LoadedCluster(read())
    before = loaded.runner.before
    loaded.runner.run(Scenario(drain=("n1",)))
    assert set(loaded.cluster.cache.assigned_pods) == {"uid-a"}
    assert loaded.runner.run(Scenario(cordon=("n2",))).before == before
    copy = loaded.make_changeable_copy()
    assert copy.cache is not loaded.cluster.cache
    assert [found.key for found in loaded.find_pods("a", "")] == ["default/a"]
