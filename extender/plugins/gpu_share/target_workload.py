"""The target workload: which pods are expected, and how often. It is configured, or learned from the pods seen.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/utils/frag.go, GetTypicalPods.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from extender.cache.pod_info import AssignedPodInfo, PodInfo
from extender.config.errors import FieldError, child
from extender.config.validation import make_invalid_value_error
from extender.plugins.gpu_share.gpu_request import (
    MAX_DEVICES,
    MILLI_PER_GPU,
    GpuRequest,
    get_gpu_models,
    get_gpu_request,
)
from extender.plugins.gpu_share.hami import HamiRequest, read_hami_request

_POPULAR_SHARE: Final = 0.95
_DEFAULT_CPU: Final = 100
_HALF_LIFE: Final = 20_000
_MAX_LEARNT_PODS: Final = 4_096


class TargetPod(msgspec.Struct, frozen=True, rename="camel", order=True):
    """A kind of pod of the target workload.

    Attributes:
        cpu: the request in milli-CPU.
        gpu_milli: the requested part of each GPU, 0 to 1000.
        gpu_count: the number of requested GPUs.
        gpu_models: the accepted GPU models, sorted; empty if every model is accepted.
        weight: the relative frequency of the kind.
    """

    cpu: int = 0
    gpu_milli: int = 0
    gpu_count: int = 0
    gpu_models: tuple[str, ...] = ()
    weight: float = 1.0

    def validate(self, path: str) -> Iterable[FieldError]:
        """Yield an error for each amount out of range."""
        if self.cpu < 0:
            yield make_invalid_value_error(child(path, "cpu"), self.cpu, "must be 0 or more")
        if not 0 <= self.gpu_milli <= MILLI_PER_GPU:
            yield make_invalid_value_error(child(path, "gpuMilli"), self.gpu_milli, f"must be 0 to {MILLI_PER_GPU}")
        if not 0 <= self.gpu_count <= MAX_DEVICES or bool(self.gpu_count) != bool(self.gpu_milli):
            message = f"must be 1 to {MAX_DEVICES} with gpuMilli, and 0 without it"
            yield make_invalid_value_error(child(path, "gpuCount"), self.gpu_count, message)
        if not self.weight > 0:
            yield make_invalid_value_error(child(path, "weight"), self.weight, "must be greater than 0")

    @property
    def request(self) -> GpuRequest:
        """The GPU request."""
        return GpuRequest(self.gpu_milli, self.gpu_count)

    def list_accepted_models(self, model_positions: Mapping[str, int]) -> list[int]:
        """Return the positions of the accepted GPU models, see `DeviceTable.model_positions`."""
        return [
            position for name, position in model_positions.items() if not self.gpu_models or name in self.gpu_models
        ]


def make_target_pod(pod: PodInfo | AssignedPodInfo, cpu_id: int, device_memory: int = 0) -> TargetPod | None:
    """Return the kind of *pod* with the weight 1; None if its GPU request is invalid.

    *cpu_id* is the id of cpu in `Symbols.resources`. *device_memory*, the memory of a GPU in MiB, is for requests in
    HAMi's resources.
    """
    hami = read_hami_request(pod.pod)
    request = hami.make_gpu_request(device_memory) if isinstance(hami, HamiRequest) else get_gpu_request(pod)
    if isinstance(request, str) or request.milli > MILLI_PER_GPU:
        return None
    return make_kind(pod, cpu_id, request)


def make_kind(pod: PodInfo | AssignedPodInfo, cpu_id: int, request: GpuRequest) -> TargetPod:
    """Return the kind of *pod* with this GPU request and the weight 1."""
    cpu = dict(pod.signature.requests).get(cpu_id, _DEFAULT_CPU)
    return TargetPod(cpu, request.milli, request.count, tuple(sorted(get_gpu_models(pod.pod))))


def merge_pods(pods: Iterable[TargetPod]) -> tuple[TargetPod, ...]:
    """Return the pods with one entry for each kind, the most frequent first. The weights sum up to 1.

    Of equally frequent kinds the larger come first.
    """
    weights: dict[TargetPod, float] = {}
    for pod in pods:
        kind = replace(pod, weight=1.0)
        weights[kind] = weights.get(kind, 0.0) + pod.weight
    total = sum(weights.values())
    sorted_pods = sorted(weights.items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    return tuple(replace(kind, weight=weight / total) for kind, weight in sorted_pods)


def select_popular_pods(pods: Sequence[TargetPod]) -> tuple[TargetPod, ...]:
    """Return the first of *pods*, until they make up 95 % of the weight. The weights of the result sum up to 1."""
    selected_pods: list[TargetPod] = []
    cumulative_weight = 0.0
    for pod in pods:
        if cumulative_weight >= _POPULAR_SHARE:
            break
        selected_pods.append(pod)
        cumulative_weight += pod.weight
    return tuple(replace(pod, weight=pod.weight / cumulative_weight) for pod in selected_pods)


@dataclass(frozen=True, slots=True)
class TargetWorkload:
    """The target workload in force.

    Attributes:
        pods: all kinds of pods, the most frequent first; their weights sum up to 1.
        version: a number that changes with `pods`.
    """

    pods: tuple[TargetPod, ...] = ()
    version: int = 0


class WorkloadHistogram:
    """A decaying histogram of the pods seen. A pod counts half after 20,000 further pods.

    Attributes:
        device_memory: the memory of a GPU in MiB, for requests in HAMi's resources.
        has_claims: returns whether claims allocate GPUs for a pod; None if they allocate none for any pod.
        find_claimed_request: returns what the claims of such a pod take, or None if that is not known yet.
        workload: the target workload.
    """

    def __init__(self, cpu_id: int) -> None:
        self._cpu_id = cpu_id
        self.device_memory = 0
        self.has_claims: Callable[[PodInfo | AssignedPodInfo], bool] | None = None
        self.find_claimed_request: Callable[[PodInfo | AssignedPodInfo], GpuRequest | None] = lambda _: None
        self._weights: dict[TargetPod, float] = {}
        self._counted_uids: dict[str, None] = {}
        self._next_weight = 1.0
        self._count = 0
        self._next_update_count = 1
        self.workload = TargetWorkload()

    def add(self, pods: Sequence[PodInfo | AssignedPodInfo]) -> TargetWorkload:
        """Count the pods that were not counted before, and return the target workload.

        The workload is computed again after 1, 2, 4, ... pods, and later after every 1,024 pods.
        """
        for pod in pods:
            if pod.uid not in self._counted_uids:
                self._add_pod(pod)
        if self._count >= self._next_update_count:
            self._next_update_count = self._count + min(self._count, 1_024)
            kinds = (replace(kind, weight=weight) for kind, weight in self._weights.items())
            self.workload = TargetWorkload(merge_pods(kinds), self.workload.version + 1)
        return self.workload

    def add_claimed(self, pod: PodInfo, request: GpuRequest) -> None:
        """Count a pod whose claims take *request*, unless it was counted before."""
        if pod.uid not in self._counted_uids:
            self._add_kind(pod, make_kind(pod, self._cpu_id, request))

    def _add_pod(self, pod: PodInfo | AssignedPodInfo) -> None:
        if self.has_claims is not None and self.has_claims(pod):
            request = self.find_claimed_request(pod)
            kind = None if request is None else make_kind(pod, self._cpu_id, request)
        else:
            kind = make_target_pod(pod, self._cpu_id, self.device_memory)
        if kind is not None:
            self._add_kind(pod, kind)

    def _add_kind(self, pod: PodInfo | AssignedPodInfo, kind: TargetPod) -> None:
        self._counted_uids[pod.uid] = None
        if len(self._counted_uids) > _HALF_LIFE:
            del self._counted_uids[next(iter(self._counted_uids))]
        self._count += 1
        self._next_weight *= 2 ** (1 / _HALF_LIFE)
        self._weights[kind] = self._weights.get(kind, 0.0) + self._next_weight
        if self._next_weight > 1e9 or len(self._weights) > _MAX_LEARNT_PODS:
            self._shrink()

    def _shrink(self) -> None:
        """Scale the weights down, and drop the rarest half of the kinds if there are too many."""
        weights = sorted(self._weights.items(), key=lambda entry: entry[1], reverse=True)
        if len(weights) > _MAX_LEARNT_PODS:
            weights = weights[: _MAX_LEARNT_PODS // 2]
        self._weights = {kind: weight / self._next_weight for kind, weight in weights}
        self._next_weight = 1.0
