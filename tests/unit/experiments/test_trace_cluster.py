"""The cluster of a run: placements, ties and the table of its GPUs."""

from extender.experiments.policies import Policy
from extender.experiments.trace_cluster import FirstOfTies, TraceCluster
from tests.unit.experiments.small_trace import small_trace


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
