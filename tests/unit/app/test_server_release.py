"""The warning about an API server whose release is not the emulated one."""

import asyncio
import json
import logging
from typing import cast

import pytest

from extender.app.server_release import compare_server_release, parse_server_version
from extender.client.errors import ForbiddenError
from extender.client.transport import Request, Transport
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release


class VersionedServer:
    """Answers one request with a version, or raises an error."""

    def __init__(self, version: str) -> None:
        self._version = version

    async def call(self, request: Request) -> bytes:
        assert (request.method, request.path) == ("GET", "/version")
        if not self._version:
            raise ForbiddenError("not allowed")
        return json.dumps({"major": "1", "gitVersion": self._version}).encode()


@pytest.mark.parametrize(
    ("version", "release", "warning"),
    [
        (
            "v1.36.3",
            RELEASE_1_37,
            "The API server is v1.36.3, but the rules of 1.37 are in force; "
            "for the rules of its kube-scheduler pass --emulated-version=1.36",
        ),
        (
            "v1.37.2-gke.1",
            RELEASE_1_36,
            "The API server is v1.37.2-gke.1, but the rules of 1.36 are in force; "
            "for the rules of its kube-scheduler pass --emulated-version=1.37",
        ),
        (
            "v1.33.13",
            RELEASE_1_37,
            "The API server is v1.33.13, but the rules of 1.37 are in force; "
            "for the nearest rules pass --emulated-version=1.36",
        ),
        ("v1.37.2", RELEASE_1_37, ""),
        ("v1.38.0", RELEASE_1_37, ""),
        ("v1.34.9", RELEASE_1_36, ""),
        ("fake", RELEASE_1_37, ""),
        ("", RELEASE_1_37, ""),
    ],
)
def test_another_release_is_a_warning(
    version: str, release: Release, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "extender.app"):
        asyncio.run(compare_server_release(cast("Transport", VersionedServer(version)), release))
    assert [record.getMessage() for record in caplog.records] == [warning] * bool(warning)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"gitVersion": 1}'])
def test_a_response_without_a_version_is_no_error(body: bytes) -> None:
    assert parse_server_version(body) == ""


@pytest.mark.parametrize(("minor", "version"), [("36", "v1.36"), ("37", "v1.37.2")])
def test_the_minor_that_the_server_emulates_counts(minor: str, version: str) -> None:
    """During an upgrade, an API server of 1.37 runs with --emulated-version=1.36."""
    body = {"major": "1", "minor": "37", "emulationMajor": "1", "emulationMinor": minor, "gitVersion": "v1.37.2"}
    assert parse_server_version(json.dumps(body).encode()) == version
