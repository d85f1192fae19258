"""The pages of a standalone scheduler: contents, formats, authentication and authorization."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.serving.auth_middleware import AuthMiddleware
from extender.serving.authentication import Authenticator
from extender.serving.authorization import Authorizer
from extender.serving.diagnostics_app import DiagnosticsService, MetricsPage, make_diagnostics_app
from extender.serving.health import Health
from extender.serving.serving_options import AuthenticationOptions, AuthorizationOptions
from extender.serving.zpages import ProcessInfo
from tests.unit.serving.auth_fakes import ANN, FakeReviewer, NullAuthMetrics

TYPED = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"


class RecordedCalls:
    """Records resets and verbosity changes."""

    def __init__(self) -> None:
        self.resets = 0
        self.levels: list[int] = []

    def reset(self) -> None:
        self.resets += 1


def service(recorded: RecordedCalls, health: Health | None = None) -> DiagnosticsService:
    page = MetricsPage(lambda: [b"up ", b"1\n"], recorded.reset)
    return DiagnosticsService(
        health or Health(public=True),
        page,
        page,
        lambda: iter(["a 1\n", "b 2\n"]),
        {"kind": "KubeSchedulerConfiguration"},
        {"leader-elect": "true", "config": ""},
        ProcessInfo(0.0, "python3.11.9", "1.0", "1.36"),
        lambda namespace, pod, as_json: f"{namespace}/{pod}/{as_json}" if pod == "web" else None,
        recorded.levels.append,
    )


@pytest.fixture
def recorded() -> RecordedCalls:
    return RecordedCalls()


@pytest.fixture
def caller(recorded: RecordedCalls) -> TestClient:
    return TestClient(make_diagnostics_app(service(recorded)), raise_server_exceptions=False)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/livez", "ok"),
        ("/livez/ping", "ok"),
        ("/readyz?verbose", "[+]shutdown ok\nreadyz check passed\n"),
        (
            "/readyz?verbose&exclude=nope",
            '[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for "nope"\nreadyz check passed\n',
        ),
        ("/readyz?verbose&exclude=shutdown", "[+]shutdown excluded: ok\nreadyz check passed\n"),
        ("/metrics", "up 1\n"),
        ("/metrics/slis", "up 1\n"),
        ("/metrics/resources", "a 1\nb 2\n"),
        ("/configz", '{"componentconfig":{"kind":"KubeSchedulerConfiguration"}}'),
        ("/explain/shop/web", "shop/web/False"),
    ],
)
def test_each_page_has_its_content(caller: TestClient, path: str, text: str) -> None:
    answer = caller.get(path)
    assert (answer.status_code, answer.text) == (200, text)


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/readyz/nope", "/debug/pprof/heap", "/metrics/"])
def test_other_paths_are_not_found(caller: TestClient, path: str) -> None:
    """Source: cmd/kube-scheduler/app/server.go, newEndpointsHandler (1.36)."""
    answer = caller.get(path)
    assert (answer.status_code, answer.text) == (404, "404 page not found\n")


def test_the_reason_of_a_failed_check_is_only_on_its_own_page(recorded: RecordedCalls) -> None:
    observed: list[tuple[str, str, bool]] = []
    health = Health(
        readiness_checks={"informer-sync": lambda: "Node not listed yet"},
        public=True,
        observe_check=lambda *check: observed.append(check),
    )
    caller = TestClient(make_diagnostics_app(service(recorded, health)))
    answer = caller.get("/readyz")
    assert answer.status_code == 500
    assert answer.text == "[-]informer-sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"
    assert observed == [("informer-sync", "readyz", False), ("shutdown", "readyz", True)]
    assert caller.get("/readyz/informer-sync").text == "internal server error: Node not listed yet\n"


def test_the_leader_election_check_replaces_the_ping_of_healthz(recorded: RecordedCalls) -> None:
    """Source: apiserver/pkg/server/healthz/healthz.go, InstallPathHandlerWithHealthyFunc (1.36)."""
    health = Health(healthz_checks={"leaderElection": lambda: ""}, public=True)
    caller = TestClient(make_diagnostics_app(service(recorded, health)))
    assert caller.get("/healthz?verbose").text == "[+]leaderElection ok\nhealthz check passed\n"
    assert caller.get("/healthz/ping").status_code == 404


def test_delete_resets_metrics(caller: TestClient, recorded: RecordedCalls) -> None:
    """Source: cmd/kube-scheduler/app/server.go, installMetricHandler (1.36)."""
    assert caller.delete("/metrics").text == "metrics reset\n"
    assert recorded.resets == 1


def test_an_unknown_pod_is_not_found(caller: TestClient) -> None:
    answer = caller.get("/explain/shop/nope")
    assert answer.status_code == 404
    assert answer.text == "pod shop/nope is unknown, or belongs to another scheduler\n"


def test_the_name_of_an_unknown_pod_is_shown_without_control_characters(caller: TestClient) -> None:
    answer = caller.get("/explain/shop/%1b%5b31m")
    text = r"pod shop/\x1b[31m is unknown, or belongs to another scheduler"
    assert (answer.status_code, answer.text) == (404, f"{text}\n")


def test_an_explanation_is_available_as_json(caller: TestClient) -> None:
    answer = caller.get("/explain/shop/web", headers={"accept": "application/json"})
    assert (answer.text, answer.headers["content-type"]) == ("shop/web/True", "application/json")


def test_verbosity_can_be_changed_and_invalid_values_are_rejected(caller: TestClient, recorded: RecordedCalls) -> None:
    response = caller.put("/debug/flags/v", content="5")
    assert (response.status_code, response.text) == (200, "successfully set klog.logging.verbosity to 5\n")
    assert caller.put("/debug/flags/v", content="loud").status_code == 400
    assert recorded.levels == [5]


# -- statusz and flagz


def test_statusz_is_available_as_json(caller: TestClient) -> None:
    answer = caller.get("/statusz", headers={"accept": TYPED})
    assert answer.headers["content-type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    body = answer.json()
    assert (body["kind"], body["apiVersion"], body["startTime"]) == (
        "Statusz",
        "config.k8s.io/v1beta1",
        "1970-01-01T00:00:00Z",
    )


def test_statusz_lists_neither_itself_nor_debug(caller: TestClient) -> None:
    paths = caller.get("/statusz", headers={"accept": TYPED}).json()["paths"]
    assert paths == ["/configz", "/explain", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]


def test_a_page_that_is_disabled_is_not_found(recorded: RecordedCalls) -> None:
    without_flagz = TestClient(make_diagnostics_app(replace(service(recorded), has_flagz=False)))
    assert without_flagz.get("/flagz").status_code == 404
    paths = without_flagz.get("/statusz", headers={"accept": TYPED}).json()["paths"]
    assert paths == ["/configz", "/explain", "/healthz", "/livez", "/metrics", "/readyz"]
    without_statusz = TestClient(make_diagnostics_app(replace(service(recorded), has_statusz=False)))
    assert without_statusz.get("/statusz").status_code == 404


def test_flagz_is_sorted(caller: TestClient) -> None:
    assert caller.get("/flagz").text.splitlines()[3:] == ["config=", "leader-elect=true"]


def test_an_unsupported_format_is_not_acceptable(caller: TestClient) -> None:
    answer = caller.get("/flagz", headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["reason"]) == (406, "NotAcceptable")


# -- the guard


def guarded(
    recorded: RecordedCalls, *, token_reviews: list[Mapping[str, Any]], access_reviews: list[Mapping[str, Any]]
) -> TestClient:
    authenticator = Authenticator(AuthenticationOptions(), FakeReviewer(*token_reviews), NullAuthMetrics())
    authorizer = Authorizer(AuthorizationOptions(), FakeReviewer(*access_reviews), NullAuthMetrics())
    return TestClient(AuthMiddleware(make_diagnostics_app(service(recorded)), authenticator, authorizer))


BEARER = {"authorization": "Bearer secret"}


def test_an_authorized_request_is_served_with_no_cache(recorded: RecordedCalls) -> None:
    answer = guarded(recorded, token_reviews=[ANN], access_reviews=[{"allowed": True}]).get("/metrics", headers=BEARER)
    assert (answer.text, answer.headers["cache-control"]) == ("up 1\n", "no-cache, private")


@pytest.mark.parametrize(
    ("headers", "token_reviews", "access_reviews", "code", "message"),
    [
        ({}, [], [{"allowed": False}], 403, 'forbidden: User "system:anonymous" cannot get path "/metrics"'),
        (BEARER, [ANN], [{"reason": "no"}], 403, 'forbidden: User "ann" cannot get path "/metrics": no'),
        (BEARER, [{"authenticated": False}], [], 401, "Unauthorized"),
        (BEARER, [ANN], [{}], 500, 'Internal Server Error: "/metrics": the access review failed'),
    ],
    ids=["anonymous", "no rights", "wrong token", "rights cannot be looked up"],
)
def test_other_requests_get_a_status_with_the_reason(
    recorded: RecordedCalls, headers: dict[str, str], token_reviews: Any, access_reviews: Any, code: int, message: str
) -> None:
    answer = guarded(recorded, token_reviews=token_reviews, access_reviews=access_reviews).get(
        "/metrics", headers=headers
    )
    body = msgspec.json.decode(answer.content)
    assert (answer.status_code, body["kind"], body["code"], body["message"]) == (code, "Status", code, message)


def test_health_endpoints_are_always_allowed_and_single_checks_are_not(recorded: RecordedCalls) -> None:
    caller = guarded(recorded, token_reviews=[], access_reviews=[{"allowed": False}])
    assert caller.get("/readyz").status_code == 200
    assert caller.get("/readyz/shutdown").status_code == 403
