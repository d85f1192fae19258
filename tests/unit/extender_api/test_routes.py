"""The application's routes: statuses, health checks, metrics and the OpenAPI document."""

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient

from extender.cycle.plugin_runtime import PluginRuntime
from extender.extender_api.request_limits import MAX_NODES_BYTES
from extender.extender_api.routes import ExtenderService, new_app
from extender.extender_api.verbs import Verbs
from extender.framework.status import Reason
from extender.logs.klog import JsonFormatter, verbosity
from extender.metrics.exposition import make_registry, render_metrics
from extender.metrics.verb_metrics import VerbMetrics
from extender.serving.health import Health
from tests.build import make_cluster, make_node
from tests.fake_plugins import FixedScore, RaisingPlugin, RejectingFilter, make_profile

BODY = '{"Pod": {"metadata": {"name": "web"}}, "Nodes": null, "NodeNames": ["n1", "n2", "new"]}'


def make_client(
    *plugins: Any, health: Health | None = None, get_not_ready_reason: Callable[[], str] = lambda: "", **more: Any
) -> TestClient:
    registry = make_registry()
    metrics = VerbMetrics(registry)
    profile = make_profile(*plugins)
    cache = make_cluster(make_node("n1"), make_node("n2"))
    verbs = Verbs(
        cache,
        {profile.scheduler_name: profile},
        profile,
        PluginRuntime(),
        PluginRuntime(),
        metrics=metrics,
        get_not_ready_reason=get_not_ready_reason,
    )
    service = ExtenderService(verbs, health or Health(), metrics, lambda: render_metrics(registry))
    return TestClient(new_app(service), **more)


@pytest.fixture
def caller() -> TestClient:
    return make_client(RejectingFilter({Reason("no"): ["n2"]}), FixedScore({"n1": 50}))


def test_filter_and_prioritize_return_json(caller: TestClient) -> None:
    response = caller.post("/filter", content=BODY)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {
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


def test_the_content_type_of_a_request_is_ignored(caller: TestClient) -> None:
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
            'Content-Encoding "gzip" is not supported; send the body uncompressed',
        ),
        (
            "POST",
            "/prioritize",
            {"content-length": str(MAX_NODES_BYTES + 1)},
            413,
            "a request may have at most 268435456 bytes",
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
def test_other_requests_get_a_status_and_one_line(
    caller: TestClient, method: str, path: str, headers: dict[str, str], status: int, line: str
) -> None:
    response = caller.request(method, path, headers=headers, follow_redirects=False)
    assert (response.status_code, response.text.rstrip("\n")) == (status, line)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_bug_in_a_plugin_is_an_error_of_filter_and_a_status_of_prioritize() -> None:
    caller = make_client(RaisingPlugin())
    assert caller.post("/filter", content=BODY).json()["Error"].startswith('running "RaisingPlugin" filter plugin: ')
    response = caller.post("/prioritize", content=BODY)
    assert response.status_code == 500
    assert response.text.startswith('running "RaisingPlugin" filter plugin: ')
    assert "Traceback" not in response.text


def test_the_connection_is_closed_after_an_error_because_another_replica_may_answer() -> None:
    reasons = ["", "the cache of the extender is out of date"]
    caller = make_client(get_not_ready_reason=lambda: reasons[0])
    response = caller.post("/filter", content=BODY)
    assert (response.json()["Error"], response.headers.get("connection")) == ("", None)
    del reasons[0]
    response = caller.post("/filter", content=BODY)
    assert response.json()["Error"] == "the cache of the extender is out of date"
    assert (response.status_code, response.headers.get("connection")) == (200, "close")
    response = caller.post("/prioritize", content=BODY)
    assert (response.status_code, response.headers.get("connection")) == (503, "close")
    response = caller.post("/preempt", content='{"Pod": {"metadata": {"name": "web"}}, "NodeNameToMetaVictims": {}}')
    assert (response.status_code, response.headers.get("connection")) == (503, "close")
    assert caller.post("/filter", content="{").headers.get("connection") is None


@pytest.mark.parametrize("victims", ["null", "{}", '{"Pods":null,"NumPDBViolations":0}', '{"Pods":[]}'])
def test_a_node_without_proposed_victims_is_in_the_answer_of_preempt(caller: TestClient, victims: str) -> None:
    """kube-scheduler 1.38 sends such nodes to let an extender add victims."""
    body = f'{{"Pod": {{"metadata": {{"name": "web"}}}}, "NodeNameToMetaVictims": {{"n1": {victims}}}}}'
    assert caller.post("/preempt", content=body).json() == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": 0}}
    }


def test_an_unexpected_exception_has_no_traceback_in_the_response() -> None:
    def broken() -> str:
        raise LookupError("secret")

    caller = make_client(health=Health(readiness_checks={"broken": broken}), raise_server_exceptions=False)
    response = caller.get("/readyz")
    assert (response.status_code, response.text) == (500, "internal error: LookupError\n")


def test_a_request_without_enough_memory_is_rejected_without_a_traceback(
    caller: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process whose memory is limited by `ulimit -v`."""
    with monkeypatch.context() as patch:
        patch.setattr(Verbs, "filter", Mock(side_effect=MemoryError))
        response = caller.post("/filter", content=BODY)
    assert (response.status_code, response.headers.get("connection")) == (503, "close")
    assert response.text == "not enough memory for this request\n"
    assert caller.post("/filter", content=BODY).json()["NodeNames"] == ["n1"]


def test_health_endpoints_list_their_checks_if_verbose(caller: TestClient) -> None:
    assert [caller.get(path).text for path in ("/livez", "/healthz", "/readyz")] == ["ok", "ok", "ok"]
    assert caller.get("/readyz?verbose").text == "[+]ping ok\n[+]shutdown ok\nreadyz check passed\n"
    assert "[+]shutdown excluded: ok" in caller.get("/readyz?verbose&exclude=shutdown&exclude=x").text


def test_a_draining_process_is_not_ready() -> None:
    caller = make_client(health=Health(draining=True))
    assert (caller.get("/readyz").status_code, caller.get("/livez").status_code) == (500, 200)


def test_requests_are_counted_in_the_metrics(caller: TestClient) -> None:
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
        'extender_refused_nodes_total{plugin="RejectingFilter",reason="no"} 1.0',
        'extender_unknown_nodes_total{verb="filter"} 1.0',
    } <= lines
    assert "_created" not in page.text


def test_the_openapi_document_has_both_forms_of_the_request(caller: TestClient) -> None:
    document = caller.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for verb in ("filter", "prioritize"):
        operation = document["paths"][f"/{verb}"]["post"]
        references = operation["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
        forms = [schemas[reference["$ref"].rpartition("/")[2]] for reference in references]
        assert [form["required"] for form in forms] == [["Pod", "NodeNames"], ["Pod", "Nodes"]]
        assert {"200", "400", "413", "415"} <= set(operation["responses"])
    response = document["paths"]["/filter"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert response == {"$ref": "#/components/schemas/FilterResult"}
    assert set(schemas["FilterResult"]["required"]) == set(caller.post("/filter", content=BODY).json())


def test_nothing_else_is_served(caller: TestClient) -> None:
    document = caller.get("/openapi.json").json()
    verbs = {"/filter", "/prioritize", "/preempt"}
    assert set(document["paths"]) == {*verbs, "/livez", "/healthz", "/readyz", "/metrics"}
    assert caller.post("/bind", content=b"{}").status_code == 404
    assert [caller.get(path).status_code for path in ("/docs", "/redoc")] == [404, 404]


def test_each_request_is_logged_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    caller = make_client(RejectingFilter({Reason("no"): ["n2"]}))
    with caplog.at_level(verbosity(2), "extender.access"):
        caller.post("/filter", content=BODY)
        caller.post("/filter", content=b"{")
    went_well, failed = (json.loads(JsonFormatter().format(record)) for record in caplog.records)
    assert (went_well["v"], went_well["verb"], went_well["code"], went_well["pod"]) == (2, "filter", 200, "/web")
    assert went_well["requestBytes"] == len(BODY)
    assert (failed["v"], failed["code"], failed["err"]) == (0, 400, "the body: Input data was truncated")


def test_whole_nodes_are_counted_and_warned_of_once_if_the_cluster_is_known(caplog: pytest.LogCaptureFixture) -> None:
    caller = make_client(FixedScore({}))
    for verb in ("filter", "filter", "prioritize"):
        caller.post(f"/{verb}", json={"Pod": {"metadata": {"name": "web"}}, "Nodes": {"items": []}})
    caller.post("/filter", content=BODY)
    page = caller.get("/metrics").text
    assert 'extender_requests_with_whole_nodes_total{verb="filter"} 2.0' in page
    assert 'extender_requests_with_whole_nodes_total{verb="prioritize"} 1.0' in page
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["Requests contain whole nodes, but their names are enough; set nodeCacheCapable: true"]


def test_a_list_of_all_requested_names_is_returned_as_it_was_sent() -> None:
    names = ["n2", 'quo"te', "n1", "\u00e9"]
    cache = make_cluster(*map(make_node, names))
    profile = make_profile(FixedScore({"n1": 50}))
    verbs = Verbs(cache, {}, profile, PluginRuntime(), PluginRuntime())
    metrics = VerbMetrics(registry := make_registry())
    app = new_app(ExtenderService(verbs, Health(), metrics, lambda: render_metrics(registry)))
    raw_names = b'["n2", "quo\\"te","n1","\\u00e9"]'
    body = b'{"Pod":{"metadata":{"name":"web"}},"Nodes":null,"NodeNames":' + raw_names + b"}"
    response = TestClient(app).post("/filter", content=body)
    assert response.content == (
        b'{"Nodes":null,"NodeNames":' + raw_names + b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
    )
    assert response.json()["NodeNames"] == names
