"""Requests against a real socket: what is sent, what is repeated, what is given up, and when."""

import asyncio
import random
from email.utils import formatdate
from pathlib import Path

import pytest

from extender.client import errors
from extender.client.credentials import Credentials
from extender.client.kubeconfig import Impersonation, Place
from extender.client.transport import Request, Transport
from extender.config.model import ClientConnection
from tests.unit.client.scripted import CUT, SILENCE, Answer, Reply, Server, failure, talking
from tests.unit.client.virtual_time import here, run

GET = Request("GET", "/api/v1/pods")
POST = Request("POST", "/api/v1/pods", body=b"{}")


def test_a_request_says_who_asks_and_wants_plain_json() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("PATCH /api/v1/namespaces/a%2Fb/pods/x", Reply(body={"ok": True}))
            path = "/api/v1/namespaces/a%2Fb/pods/x"
            request = Request("PATCH", path, {"fieldSelector": "a=b,c!=d"}, b'{"x": 1}', "application/merge-patch+json")
            assert await transport.call(request) == b'{"ok":true}'
            (asked,) = server.asked
            assert asked.query == {"fieldSelector": "a=b,c!=d"}
            assert asked.body == {"x": 1}
            wanted = {
                "accept": "application/json",
                "accept-encoding": "identity",
                "user-agent": "extender/test",
                "content-type": "application/merge-patch+json",
            }
            assert {name: asked.headers.get(name) for name in wanted} == wanted

    run(main())


@pytest.mark.parametrize(
    ("first", "waited"),
    [
        (failure(429, headers={"Retry-After": "3"}), 3.0),
        (failure(503, headers={"Retry-After": "7"}), 7.0),
        (failure(500, headers={"Retry-After": "1"}), 1.0),
        (failure(429, headers={"Retry-After": "86400"}), 60.0),
    ],
    ids=["too many requests", "unavailable", "a server's fault", "a whole day counts as a minute"],
)
@pytest.mark.parametrize("request_", [GET, POST], ids=["read", "write"])
def test_fault_12_a_server_that_names_a_time_is_asked_again_then(
    first: Reply, waited: float, request_: Request
) -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(f"{request_.method} {request_.path}", first, Reply())
            began = here().time()
            await transport.call(request_)
            assert here().time() - began == pytest.approx(waited)

    run(main())


def test_fault_12_retry_after_may_be_a_date() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            began = here().time()
            date = formatdate(here().now() + 20, usegmt=True)
            server.on("GET /api/v1/pods", failure(503, headers={"Retry-After": date}), Reply())
            await transport.call(GET)
            assert 19.0 <= here().time() - began <= 21.0

    run(main())


@pytest.mark.parametrize("answer", [failure(429), failure(500), failure(503)], ids=["429", "500", "503"])
def test_fault_12_without_a_named_time_the_caller_decides(answer: Reply) -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("GET /api/v1/pods", answer)
            with pytest.raises(errors.ApiError) as caught:
                await transport.call(GET)
            assert caught.value.code == answer.status

    run(main())


def test_fault_12_after_ten_repetitions_it_is_an_error() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("POST /api/v1/pods", *[failure(429, headers={"Retry-After": "1"})] * 11)
            with pytest.raises(errors.TooManyRequestsError):
                await transport.call(POST)
            assert len(server.asked) == 11

    run(main())


def test_fault_12_clients_turned_away_together_come_back_apart() -> None:
    async def main() -> None:
        async with Server() as server, talking(server, chance=random.Random(7).random) as transport:
            server.on("GET /api/v1/pods", *[failure(429, headers={"Retry-After": "10"})] * 5, *[Reply()] * 5)
            began = here().time()
            await asyncio.gather(*(transport.call(GET) for _ in range(5)))
            again = sorted(asked.at - began for asked in server.asked[5:])
            assert again[0] >= 10.0
            assert again[-1] <= 12.5
            assert len({round(at, 3) for at in again}) == 5

    run(main())


@pytest.mark.parametrize(
    ("request_", "asked"), [(GET, 2), (POST, 1)], ids=["a read is asked again", "a write may have been carried out"]
)
def test_a_connection_cut_before_the_answer(request_: Request, asked: int) -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            answers: list[Answer] = [CUT, Reply(body={"a": 1})]
            server.on(f"{request_.method} {request_.path}", *answers)
            if asked == 1:
                with pytest.raises(errors.UnreachableError) as caught:
                    await transport.call(request_)
                assert caught.value.sent
            else:
                assert await transport.call(request_) == b'{"a":1}'
            assert len(server.asked) == asked

    run(main())


def test_a_refused_connection_was_never_sent_and_is_not_repeated_here() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            await server.stop()
            with pytest.raises(errors.UnreachableError) as caught:
                await transport.call(GET)
            assert not caught.value.sent
            await server.start()

    run(main())


def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("POST /api/v1/pods", SILENCE)
            began = here().time()
            with pytest.raises(errors.UnreachableError, match="no answer in time") as caught:
                await transport.call(POST)
            assert caught.value.sent
            assert here().time() - began == pytest.approx(30.0)

    run(main())


def test_the_rate_bounds_requests_and_their_repetitions() -> None:
    async def main() -> None:
        async with Server() as server, talking(server, qps=10.0, burst=2) as transport:
            server.on("GET /api/v1/pods", *[Reply()] * 6)
            began = here().time()
            await asyncio.gather(*(transport.call(GET) for _ in range(6)))
            at = [asked.at - began for asked in server.asked]
            assert at == pytest.approx([0.0, 0.0, 0.1, 0.2, 0.3, 0.4])

    run(main())


def test_no_more_requests_are_under_way_at_once_than_are_worth_a_connection() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("POST /api/v1/pods", *[SILENCE] * 40)
            began = here().time()
            await asyncio.gather(*(transport.call(POST) for _ in range(40)), return_exceptions=True)
            at = [asked.at - began for asked in server.asked]
            assert at == pytest.approx([0.0] * 32 + [30.0] * 8)

    run(main())


def test_what_is_no_longer_allowed_when_its_turn_comes_is_not_sent() -> None:
    async def main() -> None:
        async with Server() as server, talking(server, qps=1.0, burst=1) as transport:
            server.on("POST /api/v1/pods", Reply())
            until = here().time() + 0.5
            request = Request("POST", "/api/v1/pods", body=b"{}", allowed=lambda: here().time() < until)
            first, second = await asyncio.gather(
                transport.call(request), transport.call(request), return_exceptions=True
            )
            assert first == b"{}"
            assert isinstance(second, errors.FencedError)
            assert len(server.asked) == 1

    run(main())


def test_a_redirect_is_not_followed() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on("GET /api/v1/pods", Reply(302, headers={"Location": "/elsewhere"}))
            with pytest.raises(errors.ApiError) as caught:
                await transport.call(GET)
            assert caught.value.code == 302

    run(main())


def test_every_try_is_reported() -> None:
    async def main() -> None:
        told: list[tuple[str, int]] = []
        async with Server() as server:
            credentials = Credentials(Place(master=server.url), here())
            connection = ClientConnection(qps=-1)
            transport = Transport(
                credentials, connection, "x", here(), observe=lambda one: told.append((one.method, one.code))
            )
            server.on("GET /api/v1/pods", failure(503, headers={"Retry-After": "1"}), Reply())
            server.on("POST /api/v1/pods", CUT)
            await transport.call(GET)
            with pytest.raises(errors.UnreachableError):
                await transport.call(POST)
            await transport.close()
        assert told == [("GET", 503), ("GET", 200), ("POST", 0)]

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


def test_fault_13_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    async def main() -> None:
        token = tmp_path / "token"
        token.write_text("old\n")
        async with Server() as server:
            file = kubeconfig_with(tmp_path, server.url, "{tokenFile: token, as: someone, as-groups: [a, b]}")
            credentials = Credentials(Place(kubeconfig=str(file)), here())
            transport = Transport(credentials, ClientConnection(qps=-1), "x", here())
            server.on("GET /api/v1/pods", Reply(), failure(401), Reply())
            await transport.call(GET)
            token.write_text("new\n")
            await transport.call(GET)
            await transport.close()
            sent = [asked.headers["authorization"] for asked in server.asked]
            assert sent == ["Bearer old", "Bearer old", "Bearer new"]
            assert server.asked[0].headers["impersonate-user"] == "someone"

    run(main())


def test_fault_13_a_token_that_stays_refused_is_an_error_after_one_more_try(tmp_path: Path) -> None:
    async def main() -> None:
        async with Server() as server:
            file = kubeconfig_with(tmp_path, server.url, "{token: wrong}")
            credentials = Credentials(Place(kubeconfig=str(file)), here())
            transport = Transport(credentials, ClientConnection(qps=-1), "x", here())
            server.on("GET /api/v1/pods", failure(401), failure(401))
            with pytest.raises(errors.UnauthorizedError):
                await transport.call(GET)
            await transport.close()

    run(main())


def test_requests_refused_together_read_the_credentials_once(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = tmp_path / "plugin"
        status = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
        plugin.write_text(f"#!/bin/sh\necho run >> runs\nprintf '{status}' $(wc -l < runs)\n")
        plugin.chmod(0o755)
        exec_ = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}"
        async with Server() as server:
            file = kubeconfig_with(tmp_path, server.url, exec_)
            credentials = Credentials(Place(kubeconfig=str(file)), here())
            transport = Transport(credentials, ClientConnection(qps=-1), "x", here())
            server.on("GET /api/v1/pods", *[failure(401)] * 4, *[Reply()] * 4)
            await asyncio.gather(*(transport.call(GET) for _ in range(4)))
            await transport.close()
            sent = [asked.headers["authorization"].split()[1] for asked in server.asked]
            assert sent == ["1"] * 4 + ["2"] * 4

    run(main())


def test_whom_to_act_as_is_sent_in_headers() -> None:
    whom = Impersonation("ann", "7", ("x", "y"), {"example.org/Scopes": ("view", "edit")})
    assert whom.headers() == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "x"),
        ("Impersonate-Group", "y"),
        ("Impersonate-Extra-example.org%2FScopes", "view"),
        ("Impersonate-Extra-example.org%2FScopes", "edit"),
    )
