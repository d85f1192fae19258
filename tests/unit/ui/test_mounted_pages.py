"""The pages beside another application, and patterns that match their paths."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.ui.mounted_pages import MountedPages, find_pattern_of_pages


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
