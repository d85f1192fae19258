"""The verb, resource and object of a request."""

import pytest

from extender.fake_apiserver.endpoints.request_info import parse_request
from extender.fake_apiserver.registry.api_errors import StatusError

POD = "/api/v1/namespaces/shop/pods/web"


@pytest.mark.parametrize(
    ("method", "path", "query", "want"),
    [
        ("GET", "/api/v1/pods", {}, ("list", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": "1"}, ("watch", "pods", "", "")),
        ("GET", POD, {}, ("get", "pods", "shop", "web")),
        ("POST", "/api/v1/namespaces/shop/pods", {}, ("create", "pods", "shop", "")),
        ("POST", f"{POD}/binding", {}, ("create", "pods/binding", "shop", "web")),
        ("PATCH", f"{POD}/status", {}, ("patch", "pods/status", "shop", "web")),
        ("DELETE", "/api/v1/namespaces/shop/pods", {}, ("deletecollection", "pods", "shop", "")),
        ("GET", "/api/v1/namespaces/shop", {}, ("get", "namespaces", "", "shop")),
        ("PUT", "/api/v1/namespaces/shop/status", {}, ("update", "namespaces/status", "", "shop")),
        ("GET", "/apis/storage.k8s.io/v1/csinodes/a%2Fb", {}, ("get", "csinodes", "", "a/b")),
    ],
)
def test_a_request_is_parsed(method: str, path: str, query: dict[str, str], want: tuple[str, ...]) -> None:
    request = parse_request(method, path, query)
    assert (request.verb, request.resource_path, request.namespace, request.name) == want


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v2/pods", 404),
        ("GET", "/api/v1/namespaces/shop/nodes", 404),
        ("GET", "/api/v1/nodes/n/status/more", 404),
        ("GET", f"{POD}/eviction", 405),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/version", 404),
    ],
)
def test_an_unknown_path_or_verb_is_an_error(method: str, path: str, code: int) -> None:
    with pytest.raises(StatusError) as error:
        parse_request(method, path, {})
    assert error.value.code == code


def test_parameters_are_converted() -> None:
    request = parse_request("GET", POD, {"limit": "5", "pretty": "true", "dryRun": "All", "count": "x"})
    assert (request.parse_int_param("limit"), request.parse_int_param("missing")) == (5, None)
    assert (request.parse_bool_param("pretty"), request.parse_bool_param("missing"), request.dry_run) == (
        True,
        False,
        True,
    )
    with pytest.raises(StatusError, match='parsing "x": invalid syntax'):
        request.parse_int_param("count")
