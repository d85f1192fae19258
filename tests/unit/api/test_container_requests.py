"""The requests of a pod in an in-place resize, under the rules of each release."""

from typing import Any

import pytest

from extender.api import requests
from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod

OPTIONS_1_36 = requests.PodResourcesOptions(maximum_of_sums=False)
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


def container(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def status(name: str, allocated: str = "", actuated: str = "") -> dict[str, Any]:
    values: dict[str, Any] = {"name": name}
    if allocated:
        values["allocatedResources"] = {"cpu": allocated}
    if actuated:
        values["resources"] = {"requests": {"cpu": actuated}}
    return values


POD_STATUS = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    # spec, status, milli-CPU in 1.36, milli-CPU in 1.37
    "the maximum follows the sum": (
        {"containers": [container("a", "4"), container("b", "1")]},
        {"containerStatuses": [status("a", "2", "2"), status("b", "3", "3")]},
        7000,  # 4 + 3
        5000,  # 4 + 1 and 2 + 3
    ),
    "allocated resources count without actuated ones": (
        {"containers": [container("a", "1")]},
        {"containerStatuses": [status("a", "2")]},
        1000,
        2000,
    ),
    "the status of a plain init container counts": (
        {"containers": [container("a", "1")], "initContainers": [container("i", "2")]},
        {"initContainerStatuses": [status("i", "6", "6")]},
        2000,
        6000,
    ),
    "a sidecar adds to the containers in each sum": (
        {
            "containers": [container("a", "1")],
            "initContainers": [container("s", "1", restartPolicy="Always"), container("i", "3")],
        },
        {"initContainerStatuses": [status("s", "2", "2")]},
        5000,  # 3 + 2 during initialization
        5000,
    ),
    "the status of the pod stands for the sums of its containers": (
        {"containers": [container("a", "1")]},
        {"containerStatuses": [status("a", "9", "9")], **POD_STATUS},
        9000,
        3000,
    ),
    "half a status of the pod does not count": (
        {"containers": [container("a", "1")]},
        {"containerStatuses": [status("a", "4", "4")], "allocatedResources": {"cpu": "9"}},
        4000,
        4000,
    ),
    "with an infeasible resize a container without a status counts nothing": (
        {"containers": [container("a", "4"), container("b", "3")]},
        {"containerStatuses": [status("a", "2", "2")], "conditions": INFEASIBLE},
        5000,  # 2 + 3
        2000,
    ),
    "with an infeasible resize a pod without any status of a container requests nothing": (
        {"containers": [container("a", "4")]},
        {"conditions": INFEASIBLE},
        4000,
        0,
    ),
    "with an infeasible resize the pod's own status counts": (
        {"containers": [container("a", "8")]},
        {**POD_STATUS, "conditions": INFEASIBLE},
        8000,
        3000,
    ),
    "overhead is added once": (
        {"containers": [container("a", "1")], "overhead": {"cpu": "500m"}},
        {"containerStatuses": [status("a", "2", "2")]},
        2500,
        2500,
    ),
}


def make_pod(spec: dict[str, Any], pod_status: dict[str, Any]) -> Pod:
    return from_builtins({"metadata": {"name": "p"}, "spec": spec, "status": pod_status}, Pod)


@pytest.mark.parametrize(("spec", "pod_status", "cpu_1_36", "cpu_1_37"), CASES.values(), ids=CASES)
def test_the_requests_of_a_resized_pod(
    spec: dict[str, Any], pod_status: dict[str, Any], cpu_1_36: int, cpu_1_37: int
) -> None:
    """Source: component-helpers/resource/helpers.go, AggregateContainerRequests (1.36, 1.37)."""
    pod = make_pod(spec, pod_status)
    assert requests.pod_requests(pod, OPTIONS_1_36) == {"cpu": cpu_1_36}
    assert requests.pod_requests(pod) == ({"cpu": cpu_1_37} if cpu_1_37 else {})


def test_without_the_gate_of_pod_level_resize_the_pod_s_own_status_is_ignored() -> None:
    pod = make_pod({"containers": [container("a", "1")]}, POD_STATUS)
    options = requests.PodResourcesOptions(in_place_pod_level_resize=False)
    assert requests.pod_requests(pod, options) == {"cpu": 1000}


def test_pod_level_requests_of_the_status_count_for_names_that_the_spec_lacks() -> None:
    """Source: component-helpers/resource/helpers.go, PodRequests, effectivePodLevelResources (1.37)."""
    spec = {"containers": [container("a", "1")], "resources": {"requests": {"cpu": "2"}}}
    pod = make_pod(spec, {"resources": {"requests": {"cpu": "1", "memory": "1Mi"}}, "allocatedResources": {"cpu": "3"}})
    assert requests.pod_requests(pod, OPTIONS_1_36) == {"cpu": 3000}
    assert requests.pod_requests(pod) == {"cpu": 3000, "memory": 1024 * 1024}


def test_containers_without_requests_get_the_defaults_in_each_sum() -> None:
    """cpu: 4 + 0.1 in the spec; memory: 2 x 200 MiB in each sum."""
    spec = {"containers": [container("a", "4"), {"name": "b"}]}
    pod = make_pod(spec, {"containerStatuses": [status("a", "2", "2")]})
    assert requests.assigned_pod_nonzero_requests(pod) == (4100, 400 * 1024 * 1024)


def test_node_resources_of_claims_are_part_of_the_spec_and_the_allocated_sum() -> None:
    """The actuated sum comes from the cgroups, so that it has them already: 4, 3 + 1 and 4."""
    claims = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c", "resources": {"cpu": "1"}}]}
    pod = make_pod({"containers": [container("a", "3")]}, {"containerStatuses": [status("a", "3", "4")], **claims})
    assert requests.pod_requests(pod, requests.PodResourcesOptions(dra_node_allocatable=True)) == {"cpu": 4000}
