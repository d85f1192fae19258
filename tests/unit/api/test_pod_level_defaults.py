"""The default pod-level resources of a pod that has some.

Source: pkg/apis/core/v1/defaults.go, defaultHugePagePodLimits, defaultPodRequests (1.36).
"""

from typing import Any

import pytest

from extender.api import requests
from extender.api.codec import from_builtins
from extender.api.defaulting import set_defaults
from extender.api.kinds.pod import Pod

MIB = 1024 * 1024

CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], dict[str, int]]] = {
    # pod-level resources, resources of the containers, requests of the pod
    "a limit without a request of a container is the request": (
        {"limits": {"cpu": "2"}},
        [{}],
        {"cpu": 2000},
    ),
    "the requests of the containers have precedence over the limit": (
        {"limits": {"cpu": "2", "memory": "1Gi"}},
        [{"requests": {"cpu": "500m"}}, {"requests": {"cpu": "250m"}}],
        {"cpu": 750, "memory": 1024 * MIB},
    ),
    "a request has precedence over the limit": (
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        [{"requests": {"cpu": "500m"}}],
        {"cpu": 1000},
    ),
    "a limit of huge pages": (
        {"limits": {"hugepages-2Mi": "4Mi"}},
        [{}],
        {"hugepages-2Mi": 4 * MIB},
    ),
    "huge pages of the containers are a limit and a request of the pod": (
        {"requests": {"cpu": "1"}},
        [{"limits": {"hugepages-2Mi": "2Mi"}}, {"limits": {"hugepages-2Mi": "6Mi"}}],
        {"cpu": 1000, "hugepages-2Mi": 8 * MIB},
    ),
    "a limit of another resource is no request": (
        {"limits": {"ephemeral-storage": "1Gi", "cpu": "1"}},
        [{}],
        {"cpu": 1000},
    ),
    "no resources": ({}, [{"requests": {"cpu": "1"}}], {"cpu": 1000}),
    "without limits a resource without a pod-level request stays without one": (
        {"requests": {"memory": "1Gi"}},
        [{"requests": {"cpu": "1"}}],
        {"cpu": 1000, "memory": 1024 * MIB},
    ),
}


@pytest.mark.parametrize(("resources", "containers", "want"), CASES.values(), ids=CASES)
def test_a_pod_with_pod_level_resources_requests(
    resources: dict[str, Any], containers: list[dict[str, Any]], want: dict[str, int]
) -> None:
    spec = {"resources": resources, "containers": [{"name": str(n), "resources": c} for n, c in enumerate(containers)]}
    pod = set_defaults(from_builtins({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod))
    assert requests.incoming_pod_requests(pod) == want


def test_with_a_pod_level_request_a_container_without_a_request_has_no_default_for_scores() -> None:
    spec = {"resources": {"limits": {"cpu": "2"}}, "containers": [{"name": "a"}]}
    pod = set_defaults(from_builtins({"metadata": {"name": "p"}, "spec": spec}, Pod))
    assert requests.assigned_pod_nonzero_requests(pod) == (2000, 200 * MIB)


def test_invalid_amounts_of_containers_are_left_alone() -> None:
    spec = {
        "schedulerName": "s",
        "resources": {"limits": {"cpu": "2"}},
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "many"}}}],
    }
    pod = from_builtins({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)
    assert set_defaults(pod) is pod


def test_requests_without_limits_are_left_alone() -> None:
    """The sums of an API server of 1.36 and the status of a resize would differ otherwise."""
    resources = {"requests": {"memory": "1Gi"}}
    containers = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"schedulerName": "s", "resources": resources, "containers": containers}
    pod = from_builtins({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)
    assert set_defaults(pod) is pod


def test_complete_resources_are_not_copied() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1"}}
    spec = {"schedulerName": "s", "resources": resources, "containers": [{"name": "a"}]}
    pod = from_builtins({"metadata": {"name": "p", "namespace": "n"}, "spec": spec}, Pod)
    assert set_defaults(pod) is pod
