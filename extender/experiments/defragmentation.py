"""Move pods of a full cluster so that waiting pods fit: how much more fits with a limited number of moves.

For each waiting pod, those with the most GPU first, the search tries the nodes where one pod, or two pods of one GPU,
make enough room by leaving. The scheduling cycle proves each move at its turn: the node is cordoned, each pod is
evicted and finds another node, and the waiting pod then finds a node. Otherwise all of this is undone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from extender.answers.rebalance import PodPlacement
from extender.api.kinds.pod import Pod
from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.experiments.gpu_trace import Trace, make_arrivals
from extender.experiments.policies import Policy
from extender.experiments.trace_cluster import TraceCluster
from extender.planning.cache_edits import CacheEdits
from extender.planning.departures import make_replacement
from extender.planning.rebalance.make_room import RoomPlan
from extender.planning.rebalance.plan import Action, Change, Proof, Step
from extender.planning.scenario_changes import cordon_node, uncordon_node
from extender.plugins.gpu_share.gpu_request import (
    MILLI_PER_GPU,
    NO_GPU,
    GpuRequest,
    get_gpu_models,
    get_gpu_request,
    parse_device_indices,
)

_MAX_CANDIDATES: Final = 200
"""The number of nodes and sets of pods that are tried for a waiting pod."""


@dataclass(frozen=True, slots=True)
class Defragmentation:
    """The result of the moves of one run.

    Attributes:
        pod_count: the number of placed pods before the first move.
        before: the allocated part of the GPUs in per cent before the first move.
        after: the allocated part in per cent after the last move.
        plan: the moves, in the format of `extender rebalance`.
    """

    policy: str
    seed: int
    pod_count: int
    before: float
    after: float
    plan: RoomPlan


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Pods of a node whose move may make room.

    Attributes:
        milli: the GPU milli that the pods request together; smaller sets are tried first.
    """

    milli: int
    node: str
    pods: tuple[AssignedPodInfo, ...]


def defragment(
    trace: Trace, policy: Policy, seed: int, max_percent: float, on_progress: Callable[[float], None] | None = None
) -> Defragmentation:
    """Place pods until they request 100 % of the GPUs, then move at most *max_percent* of the placed pods.

    *on_progress* is called with the finished part of the work, from 0 to 1: first for each pod that arrives, which is
    half of the work, then for each waiting pod.

    Raises:
        RunError: a plugin failed.
    """
    arrivals = make_arrivals(trace, seed)
    cluster = TraceCluster(trace, arrivals.nodes, policy, seed)
    end = int(np.searchsorted(np.cumsum(arrivals.gpu_milli), trace.capacity, side="right"))
    placed_milli, waiting = 0, list[tuple[int, Pod]]()
    report = on_progress or _ignore_progress
    for index, (pod, milli) in enumerate(zip(arrivals.pods[:end], arrivals.gpu_milli[:end], strict=True), start=1):
        if cluster.place(pod):
            placed_milli += milli
        elif milli:
            waiting.append((milli, pod))
        report(index / end / 2)
    pod_count = len(cluster.cache.assigned_pods)
    waiting.sort(key=lambda entry: -entry[0])
    search = _Search(cluster, int(pod_count * max_percent / 100))
    added, unplaced = 0, list[tuple[str, str]]()
    for index, (milli, pod) in enumerate(waiting, start=1):
        if search.make_room(pod):
            added += milli
        else:
            unplaced.append((pod.key, "no moves of the search make room"))
        report((1 + index / len(waiting)) / 2)
    plan = RoomPlan(tuple(pod.key for _, pod in waiting), Proof(tuple(search.steps)), tuple(unplaced), False)
    before, after = (round(100 * milli / trace.capacity, 2) for milli in (placed_milli, placed_milli + added))
    return Defragmentation(policy.name, seed, pod_count, before, after, plan)


def _ignore_progress(_: float) -> None:
    """Do nothing."""


class _Search:
    """The moves on one cluster."""

    def __init__(self, cluster: TraceCluster, max_moves: int) -> None:
        self._cluster, self._moves_left = cluster, max_moves
        self._failed_requests: set[object] = set()
        self._stuck_pods: set[object] = set()
        self.steps: list[Step] = []

    def make_room(self, target: Pod) -> bool:
        """Place *target* after the moves of other pods; return whether that was possible.

        Of equal pods, none is tried after one was not placed.
        """
        info = self._cluster.cache.make_pod_info(target)
        if info.signature in self._failed_requests:
            return False
        for candidate in self._list_candidates(info):
            if any(pod.signature in self._stuck_pods for pod in candidate.pods):
                continue
            if len(candidate.pods) <= self._moves_left and self._try(target, candidate):
                self._stuck_pods.clear()
                return True
        self._failed_requests.add(info.signature)
        return False

    def _list_candidates(self, target: PodInfo) -> Sequence[_Candidate]:
        request = get_gpu_request(target)
        if isinstance(request, str) or request == NO_GPU:
            return ()
        cache = self._cluster.cache
        with cache.read() as snapshot:
            cpu_id = snapshot.symbols.resources.intern("cpu")
        cpu = dict(target.signature.requests).get(cpu_id, 0)
        table, devices = self._cluster.read_devices()
        models = get_gpu_models(target.pod)
        accepted = [position for name, position in table.model_positions.items() if not models or name in models]
        candidates: list[_Candidate] = []
        enough = np.isin(devices.model, accepted) & (devices.device_count >= request.count)
        for row in np.flatnonzero(enough).tolist():
            name = cache.names[row]
            free, missing_cpu = devices.free[row].tolist(), cpu - int(devices.cpu[row])
            pods = list(cache.pods_on(name).values())
            candidates += (
                _Candidate(sum(map(_get_milli, moved)), name, moved)
                for moved in _list_sets(pods)
                if not any(pod.signature in self._stuck_pods for pod in moved)
                and sum(dict(pod.signature.requests).get(cpu_id, 0) for pod in moved) >= missing_cpu
                and _fits_without(free, request, moved)
            )
        return sorted(candidates, key=lambda entry: (len(entry.pods), entry.milli, entry.node))[:_MAX_CANDIDATES]

    def _try(self, target: Pod, candidate: _Candidate) -> bool:
        """Make the moves, and place *target*; undo them if one is not possible."""
        cache, edits = self._cluster.cache, CacheEdits(self._cluster.cache)
        cordon_node(edits, candidate.node)
        steps = [Step(Change(Action.CORDON, candidate.node))]
        placed: list[str] = []
        node = ""
        for pod in candidate.pods:
            replacement = make_replacement(pod.pod)
            edits.remove_pod(pod)
            node = self._cluster.place(replacement)
            if not node:
                if len(placed) == 0:
                    self._stuck_pods.add(pod.signature)
                break
            placed.append(replacement.metadata.uid)
            steps.append(Step(Change(Action.EVICT, pod.key), candidate.node, node, (node,)))
        if node:
            uncordon_node(edits, candidate.node)
            node = self._cluster.place(target)
            if node:
                placement = PodPlacement(target.key, node)
                self.steps += [*steps, Step(Change(Action.UNCORDON, candidate.node), placed=(placement,))]
                self._moves_left -= len(candidate.pods)
                return True
        for uid in placed:
            cache.remove_pod(uid)
        edits.undo()
        return False


def _list_sets(pods: Sequence[AssignedPodInfo]) -> Iterator[tuple[AssignedPodInfo, ...]]:
    """Yield each pod, and each pair of pods that share a GPU."""
    pods_by_gpu: dict[int, list[AssignedPodInfo]] = {}
    for pod in pods:
        yield (pod,)
        if 0 < _get_milli(pod) < MILLI_PER_GPU:
            for index in parse_device_indices(pod.pod.metadata.annotations):
                pods_by_gpu.setdefault(index, []).append(pod)
    for sharing_pods in pods_by_gpu.values():
        yield from combinations(sharing_pods, 2)


def _fits_without(free: Sequence[int], request: GpuRequest, moved: Sequence[AssignedPodInfo]) -> bool:
    """Return whether enough GPUs are free without the moved pods.

    *free* is the free milli of each GPU of the node.
    """
    left = list(free)
    for pod in moved:
        pod_request = get_gpu_request(pod)
        if isinstance(pod_request, GpuRequest) and pod_request.count:
            for index in parse_device_indices(pod.pod.metadata.annotations):
                left[index] += pod_request.milli
    return sum(milli >= request.milli for milli in left) >= request.count


def _get_milli(pod: AssignedPodInfo) -> int:
    request = get_gpu_request(pod)
    return request.total if isinstance(request, GpuRequest) else 0
