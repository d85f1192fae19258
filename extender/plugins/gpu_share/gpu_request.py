"""The GPUs that a pod requests, that a node has, and that the scheduler chose for a pod.

Amounts are in thousandths of one GPU ("milli"). The resources and annotations are those of Alibaba's openb trace.

Source: hkust-adsl/kubernetes-scheduler-simulator pkg/type/open-gpu-share/utils/pod.go, GetGpuMilliFromPodAnnotation,
GetGpuCountFromPodAnnotation, GpuIdStrToIntList; pkg/type/open-gpu-share/utils/const.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.api.kinds.affinity import NodeSelectorTerm
from extender.api.kinds.pod import Pod
from extender.api.requests import incoming_pod_requests
from extender.cache.pod_info import AssignedPodInfo, PodInfo

GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
GPU_COUNT: Final = "alibabacloud.com/gpu-count"
GPU_INDEX: Final = "alibabacloud.com/gpu-index"
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
MILLI_PER_GPU: Final = 1000
"""The milli of one whole GPU."""

MAX_DEVICES: Final = 64
"""The maximum number of GPUs of a node; further GPUs are not used."""


@dataclass(frozen=True, slots=True, order=True)
class GpuRequest:
    """A pod's request for GPUs.

    Attributes:
        milli: the part of each GPU, 1 to 1000; 0 if the pod requests no GPU.
        count: the number of GPUs; 0 if the pod requests no GPU.
    """

    milli: int = 0
    count: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether the pod takes a part of one GPU."""
        return 0 < self.milli < MILLI_PER_GPU

    @property
    def total(self) -> int:
        """The milli of all GPUs together."""
        return self.milli * self.count


NO_GPU: Final = GpuRequest()


def get_gpu_request(pod: PodInfo | AssignedPodInfo) -> GpuRequest | str:
    """Return the GPU request of *pod*, or a message if the request is invalid.

    The resources `gpu-milli` (the total of all GPUs) and `gpu-count` are read first. A pod without them may have
    annotations of the same names. In the annotations `gpu-milli` is the part of each GPU. Only the request in the
    resources is cached by pod signature.
    """
    request: GpuRequest | str = pod.signature.get_or_create(
        get_gpu_request, lambda: _read_resources(pod.signature.representative_pod)
    )
    return _read_annotations(pod.pod.metadata.annotations) if request == NO_GPU else request


def _read_resources(pod: Pod) -> GpuRequest | str:
    requests = incoming_pod_requests(pod)
    milli, count = requests.get(GPU_MILLI, 0), requests.get(GPU_COUNT, 0)
    return _make_request_from_totals(milli, count) if milli or count else NO_GPU


def _read_annotations(annotations: Mapping[str, str]) -> GpuRequest | str:
    if GPU_MILLI not in annotations:
        return NO_GPU
    try:
        milli, count = int(annotations[GPU_MILLI]), int(annotations.get(GPU_COUNT, "1"))
    except ValueError:
        return f"annotations {GPU_MILLI} and {GPU_COUNT} must be whole numbers"
    if milli == 0 or count == 0:
        return NO_GPU
    return _validate_request(GpuRequest(milli, count))


def _make_request_from_totals(milli: int, count: int) -> GpuRequest | str:
    if not milli:
        return _validate_request(GpuRequest(MILLI_PER_GPU, count))
    if not count:
        count = max(1, milli // MILLI_PER_GPU)
    if milli % count:
        return f"resource {GPU_MILLI} must be a multiple of {GPU_COUNT}"
    return _validate_request(GpuRequest(milli // count, count))


def _validate_request(request: GpuRequest) -> GpuRequest | str:
    if not 0 < request.milli <= MILLI_PER_GPU:
        return f"a pod can request 1 to {MILLI_PER_GPU} milli of each GPU, got {request.milli}"
    if not 0 < request.count <= MAX_DEVICES:
        return f"a pod can request 1 to {MAX_DEVICES} GPUs, got {request.count}"
    if request.is_shared and request.count > 1:
        return "a pod that requests several GPUs must request whole GPUs"
    return request


def format_device_indices(indices: Sequence[int]) -> str:
    """Return the value of the annotation `gpu-index`, such as `2-3-4`."""
    return "-".join(map(str, indices))


def parse_device_indices(annotations: Mapping[str, str]) -> tuple[int, ...]:
    """Return the GPUs in the annotation `gpu-index`; empty if it is absent or invalid."""
    parts = annotations.get(GPU_INDEX, "").split("-")
    if not all(part.isdecimal() and len(part) <= 3 for part in parts):
        return ()
    indices = tuple(map(int, parts))
    return indices if len(set(indices)) == len(indices) else ()


def get_gpu_models(pod: Pod) -> frozenset[str]:
    """Return the GPU models that *pod* accepts; empty if it accepts every model.

    The node selector and the required node affinity restrict the node label `gpu-card-model`. The pod's annotation of
    the same name lists models, separated by `|`. A model must satisfy all these restrictions.
    """
    restrictions = list(_list_model_restrictions(pod))
    return frozenset.intersection(*restrictions) if restrictions else frozenset()


def _list_model_restrictions(pod: Pod) -> Iterator[frozenset[str]]:
    if GPU_MODEL in pod.spec.node_selector:
        yield frozenset((pod.spec.node_selector[GPU_MODEL],))
    models = get_annotated_models(pod)
    if models:
        yield models
    node_affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    if required is not None:
        terms = [_get_models_of_term(term) for term in required.node_selector_terms]
        if terms and all(terms):
            yield frozenset().union(*terms)


def _get_models_of_term(term: NodeSelectorTerm) -> frozenset[str]:
    values = [
        frozenset(requirement.values)
        for requirement in term.match_expressions
        if requirement.key == GPU_MODEL and requirement.operator == "In"
    ]
    return frozenset.intersection(*values) if values else frozenset()


def get_annotated_models(pod: Pod) -> frozenset[str]:
    """Return the GPU models in the annotation `gpu-card-model` of *pod*; empty without the annotation."""
    return frozenset(filter(None, pod.metadata.annotations.get(GPU_MODEL, "").split("|")))
