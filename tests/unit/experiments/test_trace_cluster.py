"""The cluster of a run: placements, ties and the table of its GPUs."""

from extender.experiments.policies import Policy
from extender.experiments.trace_cluster import FirstOfTies, TraceCluster, find_pods_without_node
from tests.unit.experiments.small_trace import small_trace
from tests.unit.experiments.test_gpu_trace import trace_of
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod, whole_pod


def test_the_first_of_equally_good_nodes_is_selected() -> None:
    assert [FirstOfTies(seed).randrange(9) for seed in range(3)] == [0, 0, 0]


def test_a_placed_pod_takes_its_gpu_until_nothing_fits() -> None:
    trace = small_trace()
    cluster = TraceCluster(trace, trace.nodes, Policy("BestFit"), 1)
    whole = [pod for pod in trace.pods if pod.metadata.name.startswith("w")]
    names = [cluster.place(pod) for pod in whole]
    _, devices = cluster.read_devices()
    placed = sum(1 + int(pod.metadata.name[1:]) % 2 for pod, name in zip(whole, names, strict=True) if name)
    assert int((devices.free == 0).sum()) - int((devices.free.shape[1] - devices.device_count).sum()) == placed == 15
    assert set(filter(None, names)) <= {node.metadata.name for node in trace.nodes}
    assert cluster.measure_fragmentation().keys()


def test_pods_that_fit_on_no_empty_node_are_found_with_the_reason() -> None:
    assert find_pods_without_node(small_trace()) == {}
    pods = (shared_pod("a", 500), whole_pod("b", 3), shared_pod("c", 500, cpu="9"))
    trace = trace_of(gpu_node("n", gpus=2, cpu="8"), *pods)
    messages = find_pods_without_node(trace)
    assert list(messages) == ["default/b", "default/c"]
    assert messages["default/c"] == "0/1 nodes are available: 1 Insufficient cpu."
