"""The application from outside: statuses, single lines, probes, metrics and the description of the interface."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from extender.decide.engine import Engine
from extender.framework.verdict import Reason
from extender.observe.logs import JsonFormatter, verbosity
from extender.observe.metrics import exposition, new_registry
from extender.observe.verbs import VerbMetrics
from extender.web.app import Site, new_app
from extender.web.health import Health
from extender.web.verbs import Verbs
from extender.web.wire import MAX_NODES_BYTES
from tests.build import a_cluster, a_node
from tests.fake_plugins import Raises, Refuses, Scores, a_profile

BODY = '{"Pod": {"metadata": {"name": "web"}}, "Nodes": null, "NodeNames": ["n1", "n2", "new"]}'


def client(*plugins: Any, health: Health | None = None, **more: Any) -> TestClient:
    registry = new_registry()
    seen = VerbMetrics(registry)
    profile = a_profile(*plugins)
    state = a_cluster(a_node("n1"), a_node("n2"))
    verbs = Verbs(state, {profile.scheduler_name: profile}, profile, Engine(), Engine(), seen=seen)
    site = Site(verbs, health or Health(), seen, lambda: exposition(registry))
    return TestClient(new_app(site), **more)


@pytest.fixture
def caller() -> TestClient:
    return client(Refuses({Reason("no"): ["n2"]}), Scores({"n1": 50}))


def test_filter_and_prioritize_answer_json(caller: TestClient) -> None:
    answer = caller.post("/filter", content=BODY)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "Nodes": None,
        "NodeNames": ["n1"],
        "FailedNodes": {"n2": "no", "new": "node is not known to the extender (yet)"},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    assert caller.post("/prioritize", content=BODY).json() == [
        {"Host": "n1", "Score": 10},
        {"Host": "n2", "Score": 0},
        {"Host": "new", "Score": 0},
    ]


def test_the_type_a_caller_gives_its_body_does_not_matter(caller: TestClient) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert caller.post("/filter", content=BODY, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "line"),
    [
        ("GET", "/filter", {}, 405, "Method Not Allowed"),
        ("POST", "/metrics", {}, 405, "Method Not Allowed"),
        ("GET", "/", {}, 404, "Not Found"),
        ("POST", "/filter/", {}, 404, "Not Found"),
        ("POST", "/filter", {}, 400, "the body: Input data was truncated"),
        (
            "POST",
            "/filter",
            {"content-encoding": "gzip"},
            415,
            'Content-Encoding "gzip" is not understood; send the body as it is',
        ),
        (
            "POST",
            "/prioritize",
            {"content-length": str(MAX_NODES_BYTES + 1)},
            413,
            "a request may have 268435456 bytes, this has more",
        ),
    ],
    ids=[
        "a verb with GET",
        "a page with POST",
        "nothing there",
        "a slash too much",
        "no body",
        "a compressed body",
        "a body that is too big",
    ],
)
def test_what_cannot_be_answered_gets_a_status_and_one_line(
    caller: TestClient, method: str, path: str, headers: dict[str, str], status: int, line: str
) -> None:
    answer = caller.request(method, path, headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.text.rstrip("\n")) == (status, line)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_bug_in_a_plugin_is_an_error_of_filter_and_a_status_of_prioritize() -> None:
    caller = client(Raises())
    assert caller.post("/filter", content=BODY).json()["Error"].startswith('running "Raises" filter plugin: ')
    answer = caller.post("/prioritize", content=BODY)
    assert answer.status_code == 500
    assert answer.text.startswith('running "Raises" filter plugin: ')
    assert "Traceback" not in answer.text


def test_a_bug_of_our_own_does_not_show_its_traceback() -> None:
    def broken() -> str:
        raise LookupError("secret")

    caller = client(health=Health(ready={"broken": broken}), raise_server_exceptions=False)
    answer = caller.get("/readyz")
    assert (answer.status_code, answer.text) == (500, "internal error: LookupError\n")


def test_probes_answer_ok_and_list_their_checks_if_asked(caller: TestClient) -> None:
    assert [caller.get(path).text for path in ("/livez", "/healthz", "/readyz")] == ["ok", "ok", "ok"]
    assert caller.get("/readyz?verbose").text == "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n"
    assert "[+]shutdown excluded: ok" in caller.get("/readyz?verbose&exclude=shutdown&exclude=x").text


def test_a_process_that_drains_is_not_ready() -> None:
    caller = client(health=Health(draining=True))
    assert (caller.get("/readyz").status_code, caller.get("/livez").status_code) == (500, 200)


def test_metrics_tell_what_passed_through(caller: TestClient) -> None:
    caller.post("/filter", content=BODY)
    caller.post("/filter", content=b"{")
    caller.post("/prioritize", content=BODY)
    page = caller.get("/metrics")
    assert page.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = set(page.text.splitlines())
    assert {
        'extender_request_duration_seconds_count{code="200",verb="filter"} 1.0',
        'extender_request_duration_seconds_count{code="400",verb="filter"} 1.0',
        'extender_request_duration_seconds_count{code="200",verb="prioritize"} 1.0',
        'extender_requests_in_flight{verb="filter"} 0.0',
        'extender_request_nodes_sum{verb="filter"} 3.0',
        'extender_response_nodes_sum{verb="filter"} 1.0',
        f'extender_request_size_bytes_sum{{verb="filter"}} {float(len(BODY))}',
        'extender_refused_nodes_total{plugin="Refuses",reason="no"} 1.0',
        'extender_unknown_nodes_total{verb="filter"} 1.0',
    } <= lines
    assert "_created" not in page.text


def test_the_description_declares_both_forms_of_the_request(caller: TestClient) -> None:
    document = caller.get("/openapi.json").json()
    for verb in ("filter", "prioritize"):
        operation = document["paths"][f"/{verb}"]["post"]
        forms = operation["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
        assert [form["required"] for form in forms] == [["Pod", "NodeNames"], ["Pod", "Nodes"]]
        assert {"200", "400", "413", "415"} <= set(operation["responses"])
    answer = document["paths"]["/filter"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert set(answer["required"]) == set(caller.post("/filter", content=BODY).json())


def test_nothing_else_is_served(caller: TestClient) -> None:
    document = caller.get("/openapi.json").json()
    verbs = {"/filter", "/prioritize", "/preempt"}
    assert set(document["paths"]) == {*verbs, "/livez", "/healthz", "/readyz", "/metrics"}
    assert caller.post("/bind", content=b"{}").status_code == 404
    assert [caller.get(path).status_code for path in ("/docs", "/redoc")] == [404, 404]


def test_every_request_is_a_line_in_the_log_with_keys(caplog: pytest.LogCaptureFixture) -> None:
    caller = client(Refuses({Reason("no"): ["n2"]}))
    with caplog.at_level(verbosity(2), "extender.access"):
        caller.post("/filter", content=BODY)
        caller.post("/filter", content=b"{")
    went_well, failed = (json.loads(JsonFormatter().format(record)) for record in caplog.records)
    assert (went_well["v"], went_well["verb"], went_well["code"], went_well["pod"]) == (2, "filter", 200, "/web")
    assert went_well["requestBytes"] == len(BODY)
    assert (failed["v"], failed["code"], failed["err"]) == (0, 400, "the body: Input data was truncated")


def test_whole_nodes_are_counted_and_warned_of_once_where_names_would_do(caplog: pytest.LogCaptureFixture) -> None:
    caller = client(Scores({}))
    for verb in ("filter", "filter", "prioritize"):
        caller.post(f"/{verb}", json={"Pod": {"metadata": {"name": "web"}}, "Nodes": {"items": []}})
    caller.post("/filter", content=BODY)
    page = caller.get("/metrics").text
    assert 'extender_requests_with_whole_nodes_total{verb="filter"} 2.0' in page
    assert 'extender_requests_with_whole_nodes_total{verb="prioritize"} 1.0' in page
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["Requests bring whole nodes though the cluster is known; set nodeCacheCapable: true for names"]
