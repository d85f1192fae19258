"""The release of the API server, compared with the release that is emulated."""

import logging

import msgspec

from extender.client.errors import ApiError
from extender.client.transport import Request, Transport
from extender.config.releases import Release, find_release, is_version_of

log = logging.getLogger("extender.app")

VERSION_REQUEST_TIMEOUT = 10.0
"""Seconds for the response."""


class _VersionInfo(msgspec.Struct, rename="camel"):
    """The version of an API server, and the minor that it emulates.

    Source: apimachinery/pkg/version/types.go, Info (1.37).
    """

    git_version: str
    emulation_major: str = ""
    emulation_minor: str = ""


def parse_server_version(body: bytes) -> str:
    """Return the version in the response to `GET /version`, such as `v1.37.2`; empty if it cannot be read.

    For an API server that emulates another minor, as during an upgrade, this minor is returned, such as `v1.36`.
    """
    try:
        version = msgspec.json.decode(body, type=_VersionInfo)
    except msgspec.DecodeError:
        return ""
    emulated_minor = f"v{version.emulation_major}.{version.emulation_minor}"
    is_emulating = version.emulation_minor and not version.git_version.startswith(f"{emulated_minor}.")
    return emulated_minor if is_emulating else version.git_version


def warn_about_other_release(body: bytes, release: Release) -> None:
    """Log a warning if the response to `GET /version` names a release with other rules than *release*."""
    server_version = parse_server_version(body)
    server_release = find_release(server_version)
    if server_release is not None and server_release is not release:
        log.warning(
            "The API server is %s, but the rules of %s are in force; for the %s pass --emulated-version=%s",
            server_version,
            release.version,
            "rules of its kube-scheduler" if is_version_of(server_version, server_release) else "nearest rules",
            server_release.version,
        )


async def compare_server_release(transport: Transport, release: Release) -> None:
    """Read the version of the API server and log a warning as `warn_about_other_release` does; errors are ignored.

    The informers report an API server that cannot be read.
    """
    try:
        body = await transport.call(Request("GET", "/version", timeout=VERSION_REQUEST_TIMEOUT))
    except ApiError:
        return
    warn_about_other_release(body, release)
