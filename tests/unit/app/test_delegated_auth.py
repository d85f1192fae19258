"""Delegated authentication and authorization: the review clients, and the CAs of client certificates.

Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.ApplyTo,
DelegatingAuthenticationOptions.AddFlags (1.36).
"""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from extender.app.delegated_auth import DelegatedAuth, DelegatedAuthError, ReviewClient, open_delegated_auth
from extender.app.reload import ReloadError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import Request, Transport
from extender.client.writer import Writer
from extender.serving.authentication import ReviewError
from extender.serving.serving_options import (
    AuthenticationOptions,
    AuthorizationOptions,
    FrontProxyOptions,
    ServingOptions,
)
from extender.serving.tls import load_serving_certificate
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.serving.auth_fakes import NullAuthMetrics

CA_PEM = trustme.CA().cert_pem.bytes().decode()
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


def set_up(authentication: AuthenticationOptions, authorization: AuthorizationOptions | None = None) -> DelegatedAuth:
    async def main() -> DelegatedAuth:
        async with open_delegated_auth(
            authentication,
            authorization or AuthorizationOptions(),
            CredentialSource(),
            NullAuthMetrics(),
            tuple,
        ) as auth:
            return auth

    return asyncio.run(main())


def make_kubeconfig(cluster: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
        "current-context": "c",
    }


@contextmanager
def api_server(folder: Path, objects: dict[str, Any]) -> Iterator[str]:
    """Run an API server with these objects by path; return its kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(objects.get(self.path, {"kind": "Status", "message": "not found"})).encode()
            self.send_response(200 if self.path in objects else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    file = folder / "kubeconfig"
    file.write_text(json.dumps(make_kubeconfig({"server": f"http://127.0.0.1:{server.server_port}"})))
    try:
        yield str(file)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_without_a_kubeconfig_and_outside_a_pod_there_are_no_reviews() -> None:
    auth = set_up(AuthenticationOptions())
    assert (auth.authenticator.reviewer, auth.authorizer.reviewer, auth.client_cas) == (None, None, ())


@pytest.mark.parametrize(
    ("authentication", "authorization", "flag"),
    [("/no/file", "", "--authentication-kubeconfig"), ("", "/no/file", "--authorization-kubeconfig")],
)
def test_a_kubeconfig_that_does_not_exist_is_an_error(authentication: str, authorization: str, flag: str) -> None:
    """kube-scheduler does not start either. The lookup of the CAs had failed with a warning, and all were anonymous."""
    with pytest.raises(DelegatedAuthError, match=f"^{flag} /no/file does not exist or is not a regular file$"):
        set_up(AuthenticationOptions(kubeconfig=authentication), AuthorizationOptions(kubeconfig=authorization))


def test_the_front_proxy_ca_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(CA_PEM)
    auth = set_up(AuthenticationOptions(front_proxy=FrontProxyOptions(ca_file=str(tmp_path / "ca.crt"))))
    assert auth.client_cas == (CA_PEM,)
    assert len(auth.authenticator.front_proxy_cas) == 1
    assert auth.authenticator.client_cas == ()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/no/ca", "No such file or directory"),
        ("/", "Is a directory"),
        ("/dev/zero", "is a device; name a file with text"),
    ],
)
def test_an_unreadable_ca_file_is_an_error(file: str, reason: str) -> None:
    with pytest.raises(DelegatedAuthError) as caught:
        set_up(AuthenticationOptions(front_proxy=FrontProxyOptions(ca_file=file)))
    assert str(caught.value) == f"unable to load client CA: open {file}: {reason}"


def test_a_ca_file_of_more_than_16_mib_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "ca.crt").open("wb") as stream:
        stream.truncate(16 * 1024**2 + 1)
    with pytest.raises(DelegatedAuthError, match="has more than 16 MiB"):
        set_up(AuthenticationOptions(front_proxy=FrontProxyOptions(ca_file=str(tmp_path / "ca.crt"))))


def test_a_ca_file_without_a_certificate_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    with pytest.raises(DelegatedAuthError, match="a client or front proxy CA is not a certificate in PEM"):
        set_up(AuthenticationOptions(front_proxy=FrontProxyOptions(ca_file=str(tmp_path / "ca.crt"))))


def test_a_client_ca_file_replaces_the_client_ca_of_the_cluster(tmp_path: Path) -> None:
    data = {"client-ca-file": CA_PEM}
    with api_server(tmp_path, {CONFIG_MAP: {"data": data}}) as kubeconfig:
        auth = set_up(AuthenticationOptions(kubeconfig=kubeconfig, client_ca_file=str(tmp_path / "ca.crt")))
    assert auth.client_cas == ()


def test_client_ca_and_front_proxy_settings_are_looked_up_in_the_cluster(tmp_path: Path) -> None:
    data = {
        "client-ca-file": CA_PEM,
        "requestheader-client-ca-file": CA_PEM,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": "",
    }
    with api_server(tmp_path, {CONFIG_MAP: {"data": data}}) as kubeconfig:
        auth = set_up(AuthenticationOptions(kubeconfig=kubeconfig), AuthorizationOptions(kubeconfig=kubeconfig))
    proxy = auth.authenticator.settings.front_proxy
    assert auth.client_cas == (CA_PEM, CA_PEM)
    assert (proxy.allowed_names, proxy.username_headers, proxy.extra_header_prefixes) == (
        ("front-proxy-client",),
        ("X-Remote-User",),
        (),
    )
    assert auth.authenticator.reviewer is not None
    assert auth.authorizer.reviewer is not None


@pytest.mark.parametrize("names", ["not JSON", '"front-proxy-client"', "[1]"])
def test_no_front_proxy_is_trusted_if_the_names_of_front_proxies_cannot_be_read(tmp_path: Path, names: str) -> None:
    """An empty list would allow every name that the CA signed.

    Source: apiserver/pkg/authentication/request/headerrequest/requestheader_controller.go, deserializeStrings (1.36).
    """
    data = {"client-ca-file": CA_PEM, "requestheader-client-ca-file": CA_PEM, "requestheader-allowed-names": names}
    with api_server(tmp_path, {CONFIG_MAP: {"data": data}}) as kubeconfig:
        auth = set_up(AuthenticationOptions(kubeconfig=kubeconfig))
        assert (auth.client_cas, auth.authenticator.front_proxy_cas) == ((CA_PEM,), ())
        with pytest.raises(DelegatedAuthError, match=r"^requestheader-allowed-names of the front proxy is no JSON"):
            set_up(AuthenticationOptions(kubeconfig=kubeconfig, tolerate_lookup_failure=False))


def test_a_failed_lookup_is_an_error_only_if_failures_are_not_tolerated(tmp_path: Path) -> None:
    with api_server(tmp_path, {}) as kubeconfig:
        assert set_up(AuthenticationOptions(kubeconfig=kubeconfig)).client_cas == ()
        assert (
            set_up(
                AuthenticationOptions(kubeconfig=kubeconfig, skip_lookup=True, tolerate_lookup_failure=False)
            ).client_cas
            == ()
        )
        with pytest.raises(DelegatedAuthError, match=r"^client and front proxy CAs could not be looked up: "):
            set_up(AuthenticationOptions(kubeconfig=kubeconfig, tolerate_lookup_failure=False))


@pytest.mark.parametrize("config_map", [[], {"data": None}, {"data": "x"}, {"data": {"client-ca-file": None}}, "x"])
def test_no_ca_is_read_from_a_response_that_is_no_config_map(tmp_path: Path, config_map: Any) -> None:
    with api_server(tmp_path, {CONFIG_MAP: config_map}) as kubeconfig:
        assert set_up(AuthenticationOptions(kubeconfig=kubeconfig)).client_cas == ()


def test_changed_cas_are_used_without_a_restart_and_missing_ones_stay(tmp_path: Path) -> None:
    """Source: apiserver/pkg/server/dynamiccertificates/configmap_cafile_content.go, ConfigMapCAController (1.36)."""
    new_ca, certificate = trustme.CA().cert_pem.bytes().decode(), load_serving_certificate(ServingOptions())
    objects: dict[str, Any] = {CONFIG_MAP: {"data": {"client-ca-file": CA_PEM}}}
    seen: list[tuple[bool, tuple[str, ...]]] = []

    async def main(kubeconfig: str) -> None:
        options = AuthenticationOptions(kubeconfig=kubeconfig)
        async with open_delegated_auth(
            options, AuthorizationOptions(), CredentialSource(), NullAuthMetrics(), tuple
        ) as auth:
            proxy = {"requestheader-client-ca-file": CA_PEM, "requestheader-username-headers": '["X-Remote-User"]'}
            for data in ({"client-ca-file": CA_PEM}, {"client-ca-file": new_ca, **proxy}, {}):
                objects[CONFIG_MAP] = {"data": data}
                seen.append((await auth.refresh(certificate), auth.client_cas))
            assert len(auth.authenticator.client_cas) == len(auth.authenticator.front_proxy_cas) == 1
            assert auth.authenticator.settings.front_proxy.username_headers == ("X-Remote-User",)
            for data in ({"client-ca-file": "nothing"}, {**proxy, "requestheader-username-headers": "nothing"}):
                objects[CONFIG_MAP] = {"data": data}
                with pytest.raises(ReloadError):
                    await auth.refresh(certificate)
            del objects[CONFIG_MAP]
            with pytest.raises(ReloadError, match="client and front proxy CAs could not be looked up"):
                await auth.refresh(certificate)
            assert auth.client_cas == (new_ca, CA_PEM)

    with api_server(tmp_path, objects) as kubeconfig:
        asyncio.run(main(kubeconfig))
    assert seen == [(False, (CA_PEM,)), (True, (new_ca, CA_PEM)), (False, (new_ca, CA_PEM))]
    assert len(certificate.context.get_ca_certs()) == 2


def test_a_review_fails_at_once_if_64_are_pending(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Callers that close their connections do not end their reviews; the API server never answers here."""

    async def main() -> None:
        async with open_delegated_auth(
            AuthenticationOptions(skip_lookup=True),
            AuthorizationOptions(kubeconfig=str(tmp_path / "kubeconfig")),
            CredentialSource(),
            NullAuthMetrics(),
            tuple,
        ) as auth:
            reviewer = auth.authorizer.reviewer
            assert isinstance(reviewer, ReviewClient)
            pending = [asyncio.create_task(reviewer.review("SubjectAccessReview", {})) for _ in range(64)]
            await asyncio.sleep(0)
            for _ in range(20):
                with pytest.raises(ReviewError, match=r"^64 reviews are pending$"):
                    await reviewer.review("SubjectAccessReview", {})
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster = {"server": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        (tmp_path / "kubeconfig").write_text(json.dumps(make_kubeconfig(cluster)))
        asyncio.run(main())
    assert len([record for record in caplog.records if record.message == "Cannot review a caller"]) in {10, 20}


class RejectingTransport:
    """A transport whose API server answers the first ten attempts with 429 and a Retry-After of a minute."""

    async def call(self, _request: Request) -> bytes:
        await asyncio.sleep(10 * 60)
        return b"{}"


def test_a_review_that_the_api_server_delays_fails_after_ten_seconds_and_is_pending_until_then() -> None:
    """Each of ten retries waits as long as Retry-After says, and uses no connection meanwhile."""

    async def main() -> list[str]:
        reviewer = ReviewClient(Writer(cast("Transport", RejectingTransport())))

        async def review() -> str:
            with pytest.raises(ReviewError) as caught:
                await reviewer.review("TokenReview", {})
            return f"{current_loop().monotonic() - start:g} s: {caught.value}"

        start = current_loop().monotonic()
        return await asyncio.gather(*(review() for _ in range(65)))

    *messages, last = run(main())
    assert set(messages) == {"10 s: no result within 10 s"}
    assert last == "0 s: 64 reviews are pending"
