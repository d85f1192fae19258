"""The service of a standalone scheduler: pages, their forms, and who is let in."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from extender.web.callers import Authenticator
from extender.web.guard import Guard
from extender.web.health import Health
from extender.web.pages import Facts, Form, status_text, wanted_form
from extender.web.rights import Authorizer
from extender.web.service import Page, Service, new_service
from extender.web.settings import Authentication, Authorization
from tests.unit.web.test_callers import ANN, Asked, Deaf

TYPED = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"


class Kept:
    """Writes down what the service asks for."""

    def __init__(self) -> None:
        self.resets = 0
        self.levels: list[int] = []

    def reset(self) -> None:
        self.resets += 1


def service(kept: Kept, health: Health | None = None) -> Service:
    page = Page(lambda: b"up 1\n", kept.reset)
    return Service(
        health or Health(open=True),
        page,
        page,
        lambda: iter(["a 1\n", "b 2\n"]),
        {"kind": "KubeSchedulerConfiguration"},
        {"leader-elect": "true", "config": ""},
        Facts(0.0, "python3.11.9", "1.0", "1.36"),
        lambda namespace, pod, as_json: f"{namespace}/{pod}/{as_json}" if pod == "web" else None,
        kept.levels.append,
    )


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def caller(kept: Kept) -> TestClient:
    return TestClient(new_service(service(kept)), raise_server_exceptions=False)


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
def test_a_page_says_what_it_is_for(caller: TestClient, path: str, text: str) -> None:
    answer = caller.get(path)
    assert (answer.status_code, answer.text) == (200, text)


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/readyz/nope", "/debug/pprof/heap", "/metrics/"])
def test_nothing_else_is_there(caller: TestClient, path: str) -> None:
    """Source: H050."""
    answer = caller.get(path)
    assert (answer.status_code, answer.text) == (404, "404 page not found\n")


def test_a_failed_check_is_told_and_its_reason_only_on_its_own_page(kept: Kept) -> None:
    told: list[tuple[str, str, bool]] = []
    health = Health(
        ready={"informer-sync": lambda: "Node not listed yet"}, open=True, told=lambda *check: told.append(check)
    )
    caller = TestClient(new_service(service(kept, health)))
    answer = caller.get("/readyz")
    assert answer.status_code == 500
    assert answer.text == "[-]informer-sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"
    assert told == [("informer-sync", "readyz", False), ("shutdown", "readyz", True)]
    assert caller.get("/readyz/informer-sync").text == "internal server error: Node not listed yet\n"


def test_the_election_stands_in_for_the_ping_of_healthz(kept: Kept) -> None:
    """Source: H043."""
    health = Health(healthy={"leaderElection": lambda: ""}, open=True)
    caller = TestClient(new_service(service(kept, health)))
    assert caller.get("/healthz?verbose").text == "[+]leaderElection ok\nhealthz check passed\n"
    assert caller.get("/healthz/ping").status_code == 404


def test_delete_resets_metrics(caller: TestClient, kept: Kept) -> None:
    """Source: H046."""
    assert caller.delete("/metrics").text == "metrics reset\n"
    assert kept.resets == 1


def test_an_unknown_pod_is_told(caller: TestClient) -> None:
    answer = caller.get("/explain/shop/nope")
    assert answer.status_code == 404
    assert answer.text == "pod shop/nope is not known, or none of our schedulers is to place it\n"


def test_an_explanation_can_be_had_as_json(caller: TestClient) -> None:
    answer = caller.get("/explain/shop/web", headers={"accept": "application/json"})
    assert (answer.text, answer.headers["content-type"]) == ("shop/web/True", "application/json")


def test_verbosity_can_be_changed_and_nonsense_is_refused(caller: TestClient, kept: Kept) -> None:
    assert caller.put("/debug/flags/v", content="5").status_code == 200
    assert caller.put("/debug/flags/v", content="loud").status_code == 400
    assert kept.levels == [5]


# -- statusz and flagz


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("text/plain;q=0.5", Form()),
        (TYPED, Form("application/json", "v1beta1")),
        ("application/yaml; v=v1alpha1; g=config.k8s.io; as=Statusz", Form("application/yaml", "v1alpha1")),
        ("application/json, text/plain", Form()),
        ("application/json", None),
        ("application/json;v=v1;g=config.k8s.io;as=Statusz", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
    ],
)
def test_a_page_is_written_as_the_caller_wants_it(accept: str, form: Form | None) -> None:
    assert wanted_form(accept, "Statusz") == form


def test_status_tells_start_age_and_version() -> None:
    text = status_text(Facts(1795231915.0, "python3.11.9", "1.0", "1.36"), ["/livez", "/readyz"], 1795231915.0 + 3723)
    assert text.splitlines()[4:] == [
        "Started: Sat Nov 21 03:31:55 UTC 2026",
        "Up: 1 hr 02 min 03 sec",
        "Runtime version: python3.11.9",
        "Binary version: 1.0",
        "Emulation version: 1.36",
        "Paths: /livez /readyz",
    ]


def test_status_can_be_had_as_an_object(caller: TestClient) -> None:
    answer = caller.get("/statusz", headers={"accept": TYPED})
    assert answer.headers["content-type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
    body = answer.json()
    assert (body["kind"], body["apiVersion"], body["startTime"]) == (
        "Statusz",
        "config.k8s.io/v1beta1",
        "1970-01-01T00:00:00Z",
    )


def test_flags_are_told_sorted(caller: TestClient) -> None:
    assert caller.get("/flagz").text.splitlines()[3:] == ["config=", "leader-elect=true"]


def test_a_form_that_cannot_be_had_is_refused(caller: TestClient) -> None:
    answer = caller.get("/flagz", headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["reason"]) == (406, "NotAcceptable")


# -- the guard


def guarded(kept: Kept, *, tokens: list[Mapping[str, Any]], rights: list[Mapping[str, Any]]) -> TestClient:
    authenticator = Authenticator(Authentication(), Asked(*tokens), Deaf())
    authorizer = Authorizer(Authorization(), Asked(*rights), Deaf())
    return TestClient(Guard(new_service(service(kept)), authenticator, authorizer))


BEARER = {"authorization": "Bearer secret"}


def test_a_caller_with_rights_is_answered_and_nothing_is_cached(kept: Kept) -> None:
    answer = guarded(kept, tokens=[ANN], rights=[{"allowed": True}]).get("/metrics", headers=BEARER)
    assert (answer.text, answer.headers["cache-control"]) == ("up 1\n", "no-cache, private")


@pytest.mark.parametrize(
    ("headers", "tokens", "rights", "code", "message"),
    [
        ({}, [], [{"allowed": False}], 403, 'forbidden: User "system:anonymous" cannot get path "/metrics"'),
        (BEARER, [ANN], [{"reason": "no"}], 403, 'forbidden: User "ann" cannot get path "/metrics": no'),
        (BEARER, [{"authenticated": False}], [], 401, "Unauthorized"),
        (BEARER, [ANN], [{}], 500, 'Internal Server Error: "/metrics": rights could not be looked up'),
    ],
    ids=["anonymous", "no rights", "wrong token", "rights cannot be looked up"],
)
def test_others_get_a_status_that_says_why(
    kept: Kept, headers: dict[str, str], tokens: Any, rights: Any, code: int, message: str
) -> None:
    answer = guarded(kept, tokens=tokens, rights=rights).get("/metrics", headers=headers)
    body = msgspec.json.decode(answer.content)
    assert (answer.status_code, body["kind"], body["code"], body["message"]) == (code, "Status", code, message)


def test_probes_are_open_to_all_and_single_checks_are_not(kept: Kept) -> None:
    caller = guarded(kept, tokens=[], rights=[{"allowed": False}])
    assert caller.get("/readyz").status_code == 200
    assert caller.get("/readyz/shutdown").status_code == 403
