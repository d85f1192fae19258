"""API paths of kinds."""

import pytest

from extender.client.rest_mapping import ENDPOINTS, Endpoint


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


def test_a_name_of_a_namespaced_kind_needs_a_namespace() -> None:
    with pytest.raises(ValueError, match="pods/a: a namespace is missing"):
        ENDPOINTS["Pod"].build_path("", "a")
