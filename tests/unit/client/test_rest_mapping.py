"""API paths of kinds."""

import pytest

from extender.client.rest_mapping import ENDPOINTS, Endpoint, get_endpoint
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release


@pytest.mark.parametrize(
    ("endpoint", "arguments", "path"),
    [
        (ENDPOINTS["Pod"], ("ns", "a", "binding"), "/api/v1/namespaces/ns/pods/a/binding"),
        (ENDPOINTS["Pod"], (), "/api/v1/pods"),
        (ENDPOINTS["Pod"], ("ns",), "/api/v1/namespaces/ns/pods"),
        (ENDPOINTS["Node"], ("", "n/1?x"), "/api/v1/nodes/n%2F1%3Fx"),
        (ENDPOINTS["Node"], ("", ".."), "/api/v1/nodes/%2E%2E"),
        (ENDPOINTS["Lease"], ("kube-system", "x"), "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x"),
        (Endpoint("example.org/v1", "things", False), ("ns", "a"), "/apis/example.org/v1/things/a"),
    ],
    ids=["a subresource", "all", "a namespace", "odd characters", "dots", "a group", "no namespaces"],
)
def test_endpoints_return_escaped_paths(endpoint: Endpoint, arguments: tuple[str, ...], path: str) -> None:
    assert endpoint.build_path(*arguments) == path


def test_kinds_have_the_plurals_of_the_api() -> None:
    kinds = ("CSIStorageCapacity", "StorageClass", "Lease", "CoschedulingPodGroup")
    plurals = ["csistoragecapacities", "storageclasses", "leases", "podgroups"]
    assert [ENDPOINTS[kind].plural for kind in kinds] == plurals


def test_a_name_of_a_namespaced_kind_needs_a_namespace() -> None:
    with pytest.raises(ValueError, match="pods/a: a namespace is missing"):
        ENDPOINTS["Pod"].build_path("", "a")


@pytest.mark.parametrize(
    ("kind", "release", "path"),
    [
        ("PodGroup", RELEASE_1_36, "/apis/scheduling.k8s.io/v1alpha2/podgroups"),
        ("PodGroup", RELEASE_1_37, "/apis/scheduling.k8s.io/v1beta1/podgroups"),
        ("DeviceTaintRule", RELEASE_1_36, "/apis/resource.k8s.io/v1beta2/devicetaintrules"),
        ("DeviceTaintRule", RELEASE_1_37, "/apis/resource.k8s.io/v1/devicetaintrules"),
        ("Pod", RELEASE_1_36, "/api/v1/pods"),
    ],
)
def test_the_api_version_depends_on_the_release(kind: str, release: Release, path: str) -> None:
    """Source: pkg/scheduler/scheduler.go, New (1.36, 1.37)."""
    assert get_endpoint(kind, release).build_path() == path
