"""Requests over a real socket: headers, retries, rate limits, timeouts and errors."""

import asyncio
import random
from email.utils import formatdate
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from extender.client import errors
from extender.client.credentials import Credentials
from extender.client.kubeconfig import CredentialSource, Impersonation
from extender.client.transport import Request, Transport
from extender.config.model import ClientConnection
from tests.unit.client.scripted_server import (
    CUT,
    SILENCE,
    Reply,
    ScriptedResponse,
    ScriptedServer,
    Stream,
    failure_reply,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run

GET = Request("GET", "/api/v1/pods")
POST = Request("POST", "/api/v1/pods", body=b"{}")


def test_a_request_sends_the_user_agent_and_accepts_uncompressed_json() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("PATCH /api/v1/namespaces/a%2Fb/pods/x", Reply(body={"ok": True}))
            path = "/api/v1/namespaces/a%2Fb/pods/x"
            request = Request("PATCH", path, {"fieldSelector": "a=b,c!=d"}, b'{"x": 1}', "application/merge-patch+json")
            assert await transport.call(request) == b'{"ok":true}'
            (received,) = server.requests
            assert received.query == {"fieldSelector": "a=b,c!=d"}
            assert received.body == {"x": 1}
            wanted = {
                "accept": "application/json",
                "accept-encoding": "identity",
                "user-agent": "extender/test",
                "content-type": "application/merge-patch+json",
            }
            assert {name: received.headers.get(name) for name in wanted} == wanted

    run(main())


@pytest.mark.parametrize(
    ("first", "waited"),
    [
        (failure_reply(429, headers={"Retry-After": "3"}), 3.0),
        (failure_reply(503, headers={"Retry-After": "7"}), 7.0),
        (failure_reply(500, headers={"Retry-After": "1"}), 1.0),
        (failure_reply(429, headers={"Retry-After": "86400"}), 60.0),
    ],
    ids=["too many requests", "unavailable", "a server's fault", "a whole day counts as a minute"],
)
@pytest.mark.parametrize("request_", [GET, POST], ids=["read", "write"])
def test_fault_12_a_request_is_retried_after_retry_after(first: Reply, waited: float, request_: Request) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(f"{request_.method} {request_.path}", first, Reply())
            start_time = current_loop().time()
            await transport.call(request_)
            assert current_loop().time() - start_time == pytest.approx(waited)

    run(main())


def test_a_token_that_is_rejected_at_the_last_attempt_is_an_error() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            busy = [failure_reply(429, headers={"Retry-After": "1"})] * 10
            server.respond("GET /api/v1/pods", *busy, failure_reply(401))
            with pytest.raises(errors.UnauthorizedError):
                await transport.call(GET)

    run(main())


def test_fault_12_retry_after_may_be_a_date() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            start_time = current_loop().time()
            date = formatdate(current_loop().now() + 20, usegmt=True)
            server.respond("GET /api/v1/pods", failure_reply(503, headers={"Retry-After": date}), Reply())
            await transport.call(GET)
            assert 19.0 <= current_loop().time() - start_time <= 21.0

    run(main())


@pytest.mark.parametrize(
    "reply", [failure_reply(429), failure_reply(500), failure_reply(503)], ids=["429", "500", "503"]
)
def test_fault_12_without_retry_after_there_is_no_retry(reply: Reply) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("GET /api/v1/pods", reply)
            with pytest.raises(errors.ApiError) as caught:
                await transport.call(GET)
            assert caught.value.code == reply.status

    run(main())


def test_fault_12_after_ten_retries_it_is_an_error() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("POST /api/v1/pods", *[failure_reply(429, headers={"Retry-After": "1"})] * 11)
            with pytest.raises(errors.TooManyRequestsError):
                await transport.call(POST)
            assert len(server.requests) == 11

    run(main())


def test_fault_12_clients_rejected_together_do_not_retry_together() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, jitter=random.Random(7).random) as transport:
            server.respond("GET /api/v1/pods", *[failure_reply(429, headers={"Retry-After": "10"})] * 5, *[Reply()] * 5)
            start_time = current_loop().time()
            await asyncio.gather(*(transport.call(GET) for _ in range(5)))
            retry_times = sorted(request.at - start_time for request in server.requests[5:])
            assert retry_times[0] >= 10.0
            assert retry_times[-1] <= 12.5
            assert len({round(at, 3) for at in retry_times}) == 5

    run(main())


@pytest.mark.parametrize(
    ("request_", "request_count"), [(GET, 2), (POST, 1)], ids=["a read is retried", "a write may have been executed"]
)
def test_a_connection_cut_before_the_response(request_: Request, request_count: int) -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            responses: list[ScriptedResponse] = [CUT, Reply(body={"a": 1})]
            server.respond(f"{request_.method} {request_.path}", *responses)
            if request_count == 1:
                with pytest.raises(errors.UnreachableError) as caught:
                    await transport.call(request_)
                assert caught.value.maybe_sent
            else:
                assert await transport.call(request_) == b'{"a":1}'
            assert len(server.requests) == request_count

    run(main())


def test_a_request_on_a_refused_connection_was_not_sent_and_is_not_retried() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            await server.stop()
            with pytest.raises(errors.UnreachableError) as caught:
                await transport.call(GET)
            assert not caught.value.maybe_sent
            assert caught.value.connect_error == "connection refused"
            assert str(caught.value).endswith(": connection refused")
            await server.start()

    run(main())


def test_a_request_without_a_response_times_out() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("POST /api/v1/pods", SILENCE)
            start_time = current_loop().time()
            with pytest.raises(errors.UnreachableError, match="no response in time") as caught:
                await transport.call(POST)
            assert caught.value.maybe_sent
            assert current_loop().time() - start_time == pytest.approx(30.0)

    run(main())


def test_the_rate_limit_applies_to_requests_and_retries() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, qps=10.0, burst=2) as transport:
            server.respond("GET /api/v1/pods", *[Reply()] * 6)
            start_time = current_loop().time()
            await asyncio.gather(*(transport.call(GET) for _ in range(6)))
            at = [request.at - start_time for request in server.requests]
            assert at == pytest.approx([0.0, 0.0, 0.1, 0.2, 0.3, 0.4])

    run(main())


def test_the_number_of_concurrent_requests_is_limited() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("POST /api/v1/pods", *[SILENCE] * 40)
            start_time = current_loop().time()
            await asyncio.gather(*(transport.call(POST) for _ in range(40)), return_exceptions=True)
            at = [request.at - start_time for request in server.requests]
            assert at == pytest.approx([0.0] * 32 + [30.0] * 8)

    run(main())


def test_patches_of_one_object_are_sent_one_after_the_other_unless_one_takes_too_long() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("PATCH /one", SILENCE, Stream((2.0, {})), Reply(), Reply())
            server.respond("PATCH /other", Reply())
            start_time = current_loop().time()
            paths = ["/one", "/one", "/one", "/one", "/other"]
            patches = (transport.call(Request("PATCH", path, body=b"{}")) for path in paths)
            results = await asyncio.gather(*patches, return_exceptions=True)
            at = [(request.path, round(request.at - start_time)) for request in server.requests]
            assert sorted(at) == [("/one", 0), ("/one", 5), ("/one", 7), ("/one", 7), ("/other", 0)]
            assert [isinstance(result, Exception) for result in results] == [True, False, False, False, False]

    run(main())


def test_a_request_that_is_no_longer_allowed_after_its_wait_is_not_sent() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, qps=1.0, burst=1) as transport:
            server.respond("POST /api/v1/pods", Reply())
            until = current_loop().time() + 0.5
            request = Request("POST", "/api/v1/pods", body=b"{}", is_allowed=lambda: current_loop().time() < until)
            first, second = await asyncio.gather(
                transport.call(request), transport.call(request), return_exceptions=True
            )
            assert first == b"{}"
            assert isinstance(second, errors.FencedError)
            assert len(server.requests) == 1

    run(main())


def test_a_request_is_sent_after_it_is_allowed_again_within_a_second() -> None:
    """After a search for devices of ten seconds, each binding failed, although the lease was renewed at once."""

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("POST /api/v1/pods", Reply())
            renewed_at = current_loop().time() + 0.5
            request = Request("POST", "/api/v1/pods", body=b"{}", is_allowed=lambda: current_loop().time() > renewed_at)
            assert await transport.call(request) == b"{}"
            assert len(server.requests) == 1

    run(main())


def test_a_request_that_is_no_longer_allowed_when_its_body_is_written_is_not_sent() -> None:
    """The process may be stopped after the first check, while it opens the connection."""

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("POST /api/v1/pods", Reply())
            answers = chain([True], repeat(False))
            with pytest.raises(errors.FencedError):
                await transport.call(Request("POST", "/api/v1/pods", body=b"{}", is_allowed=answers.__next__))
            answers = chain([True, False], repeat(True))
            request = Request("POST", "/api/v1/pods", body=b"{}", is_allowed=answers.__next__)
            assert await transport.call(request) == b"{}"
            assert len(server.requests) == 1

    run(main())


def test_a_redirect_is_not_followed() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond("GET /api/v1/pods", Reply(302, headers={"Location": "/elsewhere"}))
            with pytest.raises(errors.ApiError) as caught:
                await transport.call(GET)
            assert caught.value.code == 302

    run(main())


def test_every_attempt_is_reported() -> None:
    async def main() -> None:
        attempts: list[tuple[str, int]] = []
        async with ScriptedServer() as server:
            credentials = Credentials(CredentialSource(master=server.url), current_loop())
            connection = ClientConnection(qps=-1)
            transport = Transport(
                credentials,
                connection,
                "x",
                observe=lambda attempt: attempts.append((attempt.method, attempt.code)),
            )
            server.respond("GET /api/v1/pods", failure_reply(503, headers={"Retry-After": "1"}), Reply())
            server.respond("POST /api/v1/pods", CUT)
            await transport.call(GET)
            with pytest.raises(errors.UnreachableError):
                await transport.call(POST)
            await transport.close()
        assert attempts == [("GET", 503), ("GET", 200), ("POST", 0)]

    run(main())


def kubeconfig_with(folder: Path, server: str, user: str) -> Path:
    """A kubeconfig in *folder*; *user* is the YAML of its user."""
    file = folder / "config"
    file.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: there, user: me}}}}]
clusters: [{{name: there, cluster: {{server: "{server}"}}}}]
users: [{{name: me, user: {user}}}]
"""
    )
    return file


def test_fault_13_a_rejected_token_is_loaded_again_once(tmp_path: Path) -> None:
    async def main() -> None:
        token = tmp_path / "token"
        token.write_text("old\n")
        async with ScriptedServer() as server:
            file = kubeconfig_with(tmp_path, server.url, "{tokenFile: token, as: someone, as-groups: [a, b]}")
            credentials = Credentials(CredentialSource(kubeconfig=str(file)), current_loop())
            transport = Transport(credentials, ClientConnection(qps=-1), "x")
            server.respond("GET /api/v1/pods", Reply(), failure_reply(401), Reply())
            await transport.call(GET)
            token.write_text("new\n")
            await transport.call(GET)
            await transport.close()
            sent = [request.headers["authorization"] for request in server.requests]
            assert sent == ["Bearer old", "Bearer old", "Bearer new"]
            assert server.requests[0].headers["impersonate-user"] == "someone"

    run(main())


def test_fault_13_a_token_rejected_twice_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with ScriptedServer() as server:
            file = kubeconfig_with(tmp_path, server.url, "{token: wrong}")
            credentials = Credentials(CredentialSource(kubeconfig=str(file)), current_loop())
            transport = Transport(credentials, ClientConnection(qps=-1), "x")
            server.respond("GET /api/v1/pods", failure_reply(401), failure_reply(401))
            with pytest.raises(errors.UnauthorizedError):
                await transport.call(GET)
            await transport.close()

    run(main())


def test_requests_rejected_together_load_the_credentials_once(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = tmp_path / "plugin"
        status = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
        plugin.write_text(f"#!/bin/sh\necho run >> runs\nprintf '{status}' $(wc -l < runs)\n")
        plugin.chmod(0o755)
        exec_ = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}"
        async with ScriptedServer() as server:
            file = kubeconfig_with(tmp_path, server.url, exec_)
            credentials = Credentials(CredentialSource(kubeconfig=str(file)), current_loop())
            transport = Transport(credentials, ClientConnection(qps=-1), "x")
            server.respond("GET /api/v1/pods", *[failure_reply(401)] * 4, *[Reply()] * 4)
            await asyncio.gather(*(transport.call(GET) for _ in range(4)))
            await transport.close()
            sent = [request.headers["authorization"].split()[1] for request in server.requests]
            assert sent == ["1"] * 4 + ["2"] * 4

    run(main())


def test_impersonation_is_sent_in_headers() -> None:
    impersonation = Impersonation("ann", "7", ("x", "y"), {"example.org/Scopes": ("view", "edit")})
    assert impersonation.make_headers() == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "x"),
        ("Impersonate-Group", "y"),
        ("Impersonate-Extra-example.org%2FScopes", "view"),
        ("Impersonate-Extra-example.org%2FScopes", "edit"),
    )


def test_a_runtime_error_of_the_event_loop_is_an_unreachable_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop raises it if the peer resets a connection while TLS is set up."""

    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("File descriptor 12 is used by transport")

    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            monkeypatch.setattr(aiohttp.TCPConnector, "connect", fail)
            with pytest.raises(errors.UnreachableError, match="File descriptor 12 is used by transport"):
                await transport.call(Request("POST", "/x"))

    run(main())
