"""The command `extender serve` with TLS and client certificates on IPv6 addresses."""

import http.client
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from tests.flows.test_http_path import POD, command

pytestmark = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has no IPv6")


@contextmanager
def serve_with_certificates(folder: Path, ca: trustme.CA, address: str) -> Iterator[tuple[str, int]]:
    """Run a server on *address*; return the host of its printed address and its port."""
    issued = ca.issue_cert("::1", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    ca.cert_pem.write_to_path(str(folder / "ca.crt"))
    options = (
        "--port=0", f"--bind-address={address}", f"--tls-cert-file={folder / 'tls.crt'}",
        f"--tls-private-key-file={folder / 'tls.key'}", f"--client-ca-file={folder / 'ca.crt'}",
    )  # fmt: skip
    with subprocess.Popen(command(*options), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            printed = urlsplit(next(word for word in line.split() if word.startswith("https://")))
            yield str(printed.hostname), int(printed.port or 0)
        finally:
            process.kill()


def filter_nodes(host: str, port: int, context: ssl.SSLContext) -> tuple[int, list[str] | None]:
    """Send a filter request; return the status and the feasible nodes."""
    with closing(http.client.HTTPSConnection(host, port, timeout=30, context=context)) as connection:
        body = {"Pod": POD, "NodeNames": ["general-a3", "general-c1"]}
        connection.request("POST", "/filter", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read()).get("NodeNames")


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        pytest.param("::1", ("::1",), id="loopback"),
        pytest.param("::", ("::1", "127.0.0.1"), id="all addresses"),
    ],
)
def test_the_verbs_respond_to_a_client_certificate_on_ipv6(
    tmp_path: Path, address: str, hosts: tuple[str, ...]
) -> None:
    ca = trustme.CA()
    trusting = ssl.create_default_context(cadata=ca.cert_pem.bytes().decode())
    known = ssl.create_default_context(cadata=ca.cert_pem.bytes().decode())
    ca.issue_cert(common_name="system:kube-scheduler").configure_cert(known)
    with serve_with_certificates(tmp_path, ca, address) as (printed_host, port):
        assert printed_host == address
        for host in hosts:
            assert filter_nodes(host, port, known) == (200, ["general-a3"])
            assert filter_nodes(host, port, trusting) == (401, None)
