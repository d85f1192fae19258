"""The pages beside another application, and patterns that match their paths."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.ui.mounted_pages import (
    HostCheckMiddleware,
    MountedPages,
    ResponseHeadersMiddleware,
    find_pattern_of_pages,
)
from extender.ui.page_source import RecordedSource
from extender.ui.pages import make_app


def make_recorder(name: str, calls: list[str]) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        calls.append(name)

    return app


def request(scope: dict[str, str]) -> list[str]:
    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError

    async def send(_: MutableMapping[str, Any]) -> None:
        raise AssertionError

    calls: list[str] = []
    app = MountedPages(make_recorder("app", calls), make_recorder("pages", calls))
    asyncio.run(app(scope, receive, send))
    return calls


@pytest.mark.parametrize("path", ["/ui", "/ui/", "/ui/pods/a/b"])
def test_the_paths_of_the_pages_lead_to_the_pages(path: str) -> None:
    assert request({"type": "http", "path": path}) == ["pages"]


@pytest.mark.parametrize(
    "scope",
    [
        {"type": "http", "path": "/"},
        {"type": "http", "path": "/uid"},
        {"type": "http", "path": "/metrics"},
        {"type": "lifespan"},
    ],
)
def test_all_else_leads_to_the_other_application(scope: dict[str, str]) -> None:
    assert request(scope) == ["app"]


@pytest.mark.parametrize("pattern", ["/ui", "ui", "/ui/", "/ui/*", "/u*", "/*", "*", "/ui*", "/ui/pods*", "/ui/search"])
def test_a_pattern_that_matches_a_page_is_found(pattern: str) -> None:
    assert find_pattern_of_pages(["/healthz", pattern]) == pattern


def test_patterns_of_other_paths_match_no_page() -> None:
    assert find_pattern_of_pages(["/healthz", "/metrics*", "/uid", "/uid*", "/x*"]) == ""


def make_client(hosts: frozenset[str] | None) -> TestClient:
    page = PlainTextResponse("page")
    return TestClient(ResponseHeadersMiddleware(page if hosts is None else HostCheckMiddleware(page, hosts)))


LOOPBACK = frozenset(("127.0.0.1", "localhost", "[::1]"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8800", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8800"])
def test_a_request_to_a_loopback_host_is_served(host: str) -> None:
    response = make_client(LOOPBACK).get("/", headers={"Host": host})
    assert (response.status_code, response.text) == (200, "page")


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8800", "127.0.0.1.evil.example", "localhost.evil.example", "", "127.0.0.1:80:80"],
)
def test_a_request_to_another_host_is_rejected(host: str) -> None:
    response = make_client(LOOPBACK).get("/", headers={"Host": host})
    assert response.status_code == 421
    assert "page" not in response.text
    assert response.headers["x-frame-options"] == "DENY"


def test_without_hosts_every_host_is_served() -> None:
    assert make_client(None).get("/", headers={"Host": "scheduler.example"}).status_code == 200


def test_a_page_allows_nothing_inline_and_cannot_be_framed() -> None:
    headers = make_client(None).get("/").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers


def test_a_browser_asks_whether_its_scripts_are_those_of_this_version(demo_source: RecordedSource) -> None:
    """Without the header, it may use a script of an installed version for days after a newer one is installed."""
    client = TestClient(ResponseHeadersMiddleware(make_app(demo_source)))
    response = client.get("/ui/static/cluster.js")
    assert response.headers["cache-control"] == "no-cache"
    again = client.get("/ui/static/cluster.js", headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")
    assert "no-store" in client.get("/ui/").headers["cache-control"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("destination", ["image", "iframe", "script", "empty"])
def test_a_page_of_another_site_cannot_ask_in_the_background(site: str, destination: str) -> None:
    response = make_client(None).get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination})
    assert response.status_code == 403
    assert response.text.startswith("A page of another site may link")
    assert response.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("site", "destination"),
    [("cross-site", "document"), ("same-origin", "empty"), ("same-origin", "image"), ("none", "document")],
)
def test_links_and_the_requests_of_the_pages_are_served(site: str, destination: str) -> None:
    response = make_client(None).get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination})
    assert (response.status_code, response.text) == (200, "page")


def test_open_paths_are_served_for_every_host() -> None:
    client = TestClient(HostCheckMiddleware(PlainTextResponse("page"), LOOPBACK, frozenset({"/livez"})))
    foreign = {"Host": "evil.example"}
    assert client.get("/livez", headers=foreign).status_code == 200
    assert client.get("/metrics", headers=foreign).status_code == 421
    assert client.get("/metrics", headers={"Host": "localhost:80"}).status_code == 200
