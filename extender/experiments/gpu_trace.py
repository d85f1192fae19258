"""A trace: the nodes with GPUs and the pods of a recorded cluster, and the order in which the pods of a run arrive."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from msgspec.structs import replace

from extender.analysis.recorded_cluster import Recording
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.plugins.gpu_share.gpu_request import GPU_COUNT, GPU_MILLI, MAX_DEVICES, MILLI_PER_GPU, get_gpu_request
from extender.plugins.gpu_share.target_workload import TargetPod, make_target_pod, merge_pods

_DEMAND: Final = 1.3
"""The demand for GPUs of a run, in relation to the GPUs of the cluster."""

_MAX_ARRIVALS: Final = 1_000_000
"""Limit of the pods of a run. A run of the production trace has 7,000 to 17,000."""


class TraceError(ValueError):
    """The trace cannot be used for an experiment; the message is one line."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace.

    Attributes:
        nodes: the nodes with GPUs, sorted by name.
        pods: the pods without a node, sorted by name.
        gpu_milli: the requested GPU milli of each pod.
        capacity: the GPU milli of all nodes.
        target_workload: the kinds of pods with their frequencies.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    gpu_milli: tuple[int, ...]
    capacity: int
    target_workload: tuple[TargetPod, ...]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The pods of one run in the order of their arrival, and the nodes in the order that breaks ties.

    Attributes:
        pods: the pods, clones included.
        gpu_milli: the requested GPU milli of each pod.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    gpu_milli: tuple[int, ...]


def make_trace(recording: Recording) -> Trace:
    """Make a trace of the nodes with GPUs and of the pending pods of *recording*.

    Raises:
        TraceError: no node or no pod has GPUs, amounts of GPUs are invalid, or too many pods would arrive.
    """
    cache = Cache()
    for obj in sorted((obj for obj in recording.objects if isinstance(obj, Node)), key=lambda node: node.metadata.name):
        cache.add_or_update_node(obj)
    snapshot = cache.snapshot()
    resources = snapshot.symbols.resources
    gpu_counts = snapshot.view().allocatable(resources.intern(GPU_COUNT)).tolist()
    nodes = tuple(node for node, count in zip(snapshot.nodes, gpu_counts, strict=True) if count)
    if not nodes:
        raise TraceError(f"no node has the allocatable resource {GPU_COUNT}")
    gpu_milli_of_nodes = snapshot.view().allocatable(resources.intern(GPU_MILLI)).tolist()
    for node, count, milli in zip(snapshot.nodes, gpu_counts, gpu_milli_of_nodes, strict=True):
        if count > MAX_DEVICES:
            raise TraceError(f"node {node.metadata.name}: {GPU_COUNT} is {count}; want at most {MAX_DEVICES}")
        if count and milli != MILLI_PER_GPU * count:
            raise TraceError(
                f"node {node.metadata.name}: {GPU_COUNT} is {count}, but {GPU_MILLI} is {milli}; "
                f"want {MILLI_PER_GPU * count}, {MILLI_PER_GPU} for each GPU"
            )
    pods = sorted(
        (obj for obj in recording.objects if isinstance(obj, Pod) and not obj.spec.node_name), key=lambda pod: pod.key
    )
    pod_infos = [snapshot.make_pod_info(pod) for pod in pods]
    gpu_milli = tuple(map(_get_gpu_milli, pod_infos))
    if not any(gpu_milli):
        raise TraceError("no pending pod requests a GPU")
    capacity = MILLI_PER_GPU * sum(gpu_counts)
    arrival_count = round(_DEMAND * capacity * len(pods) / sum(gpu_milli))
    if arrival_count > _MAX_ARRIVALS:
        raise TraceError(
            f"about {arrival_count} pods like those of the trace would use the {sum(gpu_counts)} GPUs; "
            f"want at most {_MAX_ARRIVALS}: remove pods with small requests, or nodes"
        )
    kinds = [make_target_pod(pod_info, resources.intern("cpu")) for pod_info in pod_infos]
    target_workload = merge_pods(kind for kind in kinds if kind is not None)
    return Trace(nodes, tuple(pods), gpu_milli, capacity, target_workload)


def _get_gpu_milli(pod: PodInfo) -> int:
    request = get_gpu_request(pod)
    if isinstance(request, str):
        raise TraceError(f"pod {pod.key}: {request}")
    return request.total


def make_arrivals(trace: Trace, seed: int) -> Arrivals:
    """Shuffle the pods and the nodes of *trace*, and append clones of random pods.

    The pods ask for 1.3 times the GPUs of the cluster: clones are appended until the next clone would exceed this
    limit. If the pods of the trace ask for more than the limit, the last ones are dropped.

    Source: hkust-adsl/kubernetes-scheduler-simulator pkg/simulator/simulator.go, Simulator.SortClusterPods,
    Simulator.tuneUpPods, Simulator.syncClusterResourceList.
    """
    rng = Random(seed)  # noqa: S311  reproducible
    limit = _DEMAND * trace.capacity
    order = _shuffle(range(len(trace.pods)), rng)
    while sum(trace.gpu_milli[index] for index in order) > limit:
        order.pop()
    pods = [trace.pods[index] for index in order]
    gpu_milli = [trace.gpu_milli[index] for index in order]
    demand = sum(gpu_milli)
    while True:
        index = rng.randrange(len(trace.pods))
        demand += trace.gpu_milli[index]
        if demand > limit:
            break
        pods.append(_clone(trace.pods[index], len(pods)))
        gpu_milli.append(trace.gpu_milli[index])
    nodes = tuple(trace.nodes[row] for row in _shuffle(range(len(trace.nodes)), rng))
    return Arrivals(nodes, tuple(pods), tuple(gpu_milli))


def _shuffle(indices: Sequence[int], rng: Random) -> list[int]:
    shuffled_indices = list(indices)
    rng.shuffle(shuffled_indices)
    return shuffled_indices


def _clone(pod: Pod, number: int) -> Pod:
    name = f"{pod.metadata.name}-clone-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{pod.metadata.namespace}/{name}"))
