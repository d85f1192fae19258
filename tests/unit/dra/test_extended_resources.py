"""Device requests for extended resources of a pod."""

from typing import Any

from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.dra.extended_resources import ExtendedResourceRequests, build_device_requests
from tests.unit.dra.builders import make_device_class

GPU = "example.com/gpu"


def make_container(name: str, count: int | str | None, **fields: Any) -> dict[str, Any]:
    requests = {"cpu": "1"} if count is None else {"cpu": "1", GPU: str(count)}
    return {"name": name, "resources": {"requests": requests}, **fields}


def build_requests(containers: list[Any], init_containers: list[Any] | None = None) -> ExtendedResourceRequests:
    document = {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": init_containers or []}}
    return build_device_requests(from_builtins(document, Pod), frozenset([GPU]), {GPU: make_device_class("gpu")})


def get_counts(built: ExtendedResourceRequests) -> dict[str, int]:
    return {request.name: request.exactly.count for request in built.requests if request.exactly is not None}


def get_mappings(built: ExtendedResourceRequests) -> list[tuple[str, str]]:
    return [(mapping.container_name, mapping.request_name) for mapping in built.mappings]


def test_each_container_has_a_request_of_its_own() -> None:
    built = build_requests([make_container("a", 2), make_container("b", None), make_container("c", 1)])
    assert get_counts(built) == {"container-0-request-1": 2, "container-2-request-1": 1}
    assert get_mappings(built) == [("a", "container-0-request-1"), ("c", "container-2-request-1")]


def test_an_init_container_reuses_the_devices_of_later_containers() -> None:
    built = build_requests([make_container("a", 2)], [make_container("init", 1)])
    assert get_counts(built) == {"container-1-request-1": 2}
    assert get_mappings(built) == [("a", "container-1-request-1"), ("init", "container-1-request-1")]


def test_the_largest_init_container_has_a_request_for_the_remainder() -> None:
    built = build_requests([make_container("a", 1)], [make_container("small", 2), make_container("large", 4)])
    assert get_counts(built) == {"container-1-request-1": 3, "container-2-request-1": 1}
    assert get_mappings(built) == [
        ("a", "container-2-request-1"),
        ("small", "container-2-request-1"),
        ("small", "container-1-request-1"),
        ("large", "container-2-request-1"),
        ("large", "container-1-request-1"),
    ]


def test_a_sidecar_does_not_share_its_devices() -> None:
    built = build_requests([make_container("a", 1)], [make_container("sidecar", 1, restartPolicy="Always")])
    assert get_counts(built) == {"container-0-request-1": 1, "container-1-request-1": 1}


def test_a_fractional_amount_is_no_request() -> None:
    assert get_counts(build_requests([make_container("a", "500m")])) == {}
