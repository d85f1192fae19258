"""Recognising callers: whom to ask, and which authorities vouch for certificates. Source: I030, G047."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from extender.basics.clock import SystemClock
from extender.client.kubeconfig import Place
from extender.process.access import Access, AccessError, access
from extender.web.settings import Authentication, Authorization, FrontProxy
from tests.unit.web.test_callers import Deaf

AUTHORITY = trustme.CA().cert_pem.bytes().decode()
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


def known(authentication: Authentication, authorization: Authorization | None = None) -> Access:
    async def go() -> Access:
        found = await access(authentication, authorization or Authorization(), Place(), SystemClock(), "test", Deaf())
        for transport in found.transports:
            await transport.close()
        return found

    return asyncio.run(go())


@contextmanager
def cluster(folder: Path, answers: dict[str, Any]) -> Iterator[str]:
    """An API server with these objects by path; gives a kubeconfig for it."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path, {"kind": "Status", "message": "not found"})).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
        "current-context": "c",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    try:
        yield str(file)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_outside_a_cluster_and_without_a_kubeconfig_nobody_is_asked() -> None:
    found = known(Authentication())
    assert (found.authenticator.reviewer, found.authorizer.reviewer, found.authorities) == (None, None, ())


def test_authorities_of_front_proxies_are_those_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(AUTHORITY)
    found = known(Authentication(front_proxy=FrontProxy(authority=str(tmp_path / "ca.crt"))))
    assert found.authorities == (AUTHORITY,)
    assert len(found.authenticator.proxy_authorities) == 1
    assert found.authenticator.client_authorities == ()


def test_an_authority_that_cannot_be_read_is_told() -> None:
    with pytest.raises(AccessError) as caught:
        known(Authentication(front_proxy=FrontProxy(authority="/no/ca")))
    assert str(caught.value) == "unable to load client CA: open /no/ca: No such file or directory"


def test_text_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    with pytest.raises(AccessError, match="a client authority is not a certificate in PEM"):
        known(Authentication(front_proxy=FrontProxy(authority=str(tmp_path / "ca.crt"))))


def test_a_file_with_authorities_of_clients_goes_before_those_of_the_cluster(tmp_path: Path) -> None:
    data = {"client-ca-file": AUTHORITY}
    with cluster(tmp_path, {CONFIG_MAP: {"data": data}}) as kubeconfig:
        found = known(Authentication(kubeconfig=kubeconfig, client_authority=str(tmp_path / "ca.crt")))
    assert found.authorities == ()


def test_authorities_and_front_proxies_are_looked_up_in_the_cluster(tmp_path: Path) -> None:
    data = {
        "client-ca-file": AUTHORITY,
        "requestheader-client-ca-file": AUTHORITY,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": "not JSON",
    }
    with cluster(tmp_path, {CONFIG_MAP: {"data": data}}) as kubeconfig:
        found = known(Authentication(kubeconfig=kubeconfig), Authorization(kubeconfig=kubeconfig))
    proxy = found.authenticator.settings.front_proxy
    assert found.authorities == (AUTHORITY, AUTHORITY)
    assert (proxy.names, proxy.users, proxy.extras) == (("front-proxy-client",), ("X-Remote-User",), ())
    assert found.authenticator.reviewer is not None
    assert found.authorizer.reviewer is not None


def test_a_look_up_that_fails_is_tolerated_unless_it_must_not(tmp_path: Path) -> None:
    with cluster(tmp_path, {}) as kubeconfig:
        assert known(Authentication(kubeconfig=kubeconfig)).authorities == ()
        assert known(Authentication(kubeconfig=kubeconfig, skip_lookup=True, tolerate_failure=False)).authorities == ()
        with pytest.raises(AccessError, match=r"^client authorities could not be looked up: "):
            known(Authentication(kubeconfig=kubeconfig, tolerate_failure=False))
