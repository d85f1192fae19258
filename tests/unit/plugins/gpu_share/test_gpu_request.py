"""GPU requests of pods: resources, annotations, models, and the annotation with the chosen GPUs."""

from typing import Any

import pytest

from extender.plugins.gpu_share.gpu_request import (
    GPU_COUNT,
    GPU_INDEX,
    GPU_MILLI,
    GPU_MODEL,
    NO_GPU,
    GpuRequest,
    format_device_indices,
    get_gpu_models,
    get_gpu_request,
    parse_device_indices,
)
from extender.testing import make_cluster, make_pod


def read_request(pod: Any) -> GpuRequest | str:
    cluster = make_cluster(pod)
    return get_gpu_request(cluster.cache.snapshot().make_pod_info(cluster.pod("p")))


@pytest.mark.parametrize(
    ("requests", "annotations", "expected"),
    [
        ({}, {}, NO_GPU),
        ({GPU_MILLI: "300"}, {}, GpuRequest(300, 1)),
        ({GPU_MILLI: "1000"}, {}, GpuRequest(1000, 1)),
        ({GPU_MILLI: "8000", GPU_COUNT: "8"}, {}, GpuRequest(1000, 8)),
        ({GPU_MILLI: "2000"}, {}, GpuRequest(1000, 2)),
        ({GPU_COUNT: "2"}, {}, GpuRequest(1000, 2)),
        ({GPU_MILLI: "300"}, {GPU_MILLI: "500", GPU_COUNT: "1"}, GpuRequest(300, 1)),
        ({}, {GPU_MILLI: "1000", GPU_COUNT: "4"}, GpuRequest(1000, 4)),
        ({}, {GPU_MILLI: "460"}, GpuRequest(460, 1)),
        ({}, {GPU_MILLI: "0"}, NO_GPU),
        ({GPU_MILLI: "1500"}, {}, "a pod can request 1 to 1000 milli of each GPU, got 1500"),
        ({GPU_MILLI: "900", GPU_COUNT: "2"}, {}, "a pod that requests several GPUs must request whole GPUs"),
        ({GPU_MILLI: "901", GPU_COUNT: "2"}, {}, f"resource {GPU_MILLI} must be a multiple of {GPU_COUNT}"),
        ({GPU_COUNT: "65"}, {}, "a pod can request 1 to 64 GPUs, got 65"),
        ({}, {GPU_MILLI: "half"}, f"annotations {GPU_MILLI} and {GPU_COUNT} must be whole numbers"),
    ],
)
def test_a_request_is_read_from_resources_then_from_annotations(
    requests: dict[str, Any], annotations: dict[str, str], expected: GpuRequest | str
) -> None:
    assert read_request(make_pod("p", annotations=annotations, **requests)) == expected


@pytest.mark.parametrize(
    ("text", "indices"),
    [("0", (0,)), ("2-3-4", (2, 3, 4)), ("", ()), ("1-1", ()), ("a", ()), ("1-", ()), ("-1", ()), ("9999", ())],
)
def test_an_invalid_list_of_gpus_counts_as_absent(text: str, indices: tuple[int, ...]) -> None:
    assert parse_device_indices({GPU_INDEX: text}) == indices


def test_the_annotation_joins_the_gpus_by_hyphens() -> None:
    assert format_device_indices((0, 1, 7)) == "0-1-7"


def models_of(annotations: dict[str, str] | None = None, **spec: Any) -> frozenset[str]:
    return get_gpu_models(make_cluster(make_pod("p", annotations=annotations, spec=spec)).pod("p"))


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_models_come_from_annotation_selector_and_affinity() -> None:
    in_models = {"key": GPU_MODEL, "operator": "In", "values": ["T4", "P100"]}
    assert models_of() == frozenset()
    assert models_of({GPU_MODEL: "T4|A10"}) == {"T4", "A10"}
    assert models_of(nodeSelector={GPU_MODEL: "G2"}) == {"G2"}
    assert models_of(affinity=affinity([in_models])) == {"T4", "P100"}
    assert models_of({GPU_MODEL: "T4|A10"}, affinity=affinity([in_models])) == {"T4"}


def test_a_term_without_a_model_accepts_every_model() -> None:
    in_models = {"key": GPU_MODEL, "operator": "In", "values": ["T4"]}
    in_zone = {"key": "zone", "operator": "In", "values": ["a"]}
    assert models_of(affinity=affinity([in_models], [in_zone])) == frozenset()
    assert models_of(affinity=affinity([in_models, in_zone])) == {"T4"}
