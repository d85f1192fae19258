"""Writes, and bindings that are rejected or whose response is lost."""

import asyncio
import json
from typing import Any

import pytest

from extender.client import errors
from extender.client.transport import MERGE_PATCH
from extender.client.writer import BINDING_RETRY_DELAYS, BindOutcome, WriteOptions, Writer
from tests.unit.client.builders import make_binding, make_pod
from tests.unit.client.scripted_server import (
    CUT,
    SILENCE,
    Reply,
    ScriptedResponse,
    ScriptedServer,
    failure_reply,
    open_transport,
)
from tests.unit.client.virtual_time import current_loop, run

BIND = "POST /api/v1/namespaces/ns/pods/a/binding"
GET = "GET /api/v1/namespaces/ns/pods/a"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"


def test_the_four_writes_reach_their_objects() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            writer = Writer(transport)
            server.respond("POST /apis/resource.k8s.io/v1/namespaces/ns/resourceclaims", Reply(201, {"made": 1}))
            server.respond(f"PUT {CLAIM}/status", Reply())
            server.respond("PATCH /api/v1/persistentvolumes/pv", Reply())
            server.respond("DELETE /api/v1/namespaces/ns/pods/a", Reply())
            assert await writer.create("ResourceClaim", "ns", {"spec": {}}) == b'{"made":1}'
            await writer.update("ResourceClaim", "ns", "c", {"status": {}}, WriteOptions(subresource="status"))
            await writer.patch("PersistentVolume", "", "pv", {"spec": {}}, content_type=MERGE_PATCH)
            await writer.delete("Pod", "ns", "a", uid="u", grace_period_seconds=0)
            patched, removed = server.requests[2:]
            assert patched.headers["content-type"] == "application/merge-patch+json"
            assert removed.body == {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 0,
            }

    run(main())


def test_a_kind_that_is_not_known_is_named() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            with pytest.raises(ValueError, match='unknown kind "pods", want one of Pod, Service, '):
                await Writer(transport).patch("pods", "ns", "a", {}, content_type=MERGE_PATCH)

    run(main())


def bind_pod(*responses: tuple[str, ScriptedResponse], **options: Any) -> tuple[Any, list[Any], float]:
    """How binding ns/a with uid-a to n1 ended, the bodies that were posted, and the seconds it took."""

    async def main() -> tuple[Any, list[Any], float]:
        async with ScriptedServer() as server, open_transport(server) as transport:
            for request_line, response in responses:
                server.respond(request_line, response)
            start_time = current_loop().time()
            result: Any
            try:
                result = await Writer(transport).bind("ns", "a", make_binding("ns", "a", "uid-a", "n1"), **options)
            except errors.ApiError as error:
                result = error
            return result, [request.body for request in server.requests_to(BIND)], current_loop().time() - start_time

    return run(main())


@pytest.mark.parametrize("body", [b"<html>Please log in</html>", b'{"kind":"Status","sta', b"", b"\x1f\x8b\x08\xff"])
def test_after_a_response_to_a_binding_that_is_no_status_the_pod_is_read(body: bytes) -> None:
    """A proxy answers in the place of the API server, or changes the response."""
    bound = Reply(body=make_pod("a", 2, node="n1"))
    result, bodies, _ = bind_pod((BIND, Reply(200, body)), (GET, bound))
    assert (result, len(bodies)) == (BindOutcome.BOUND, 1)

    not_bound = Reply(body=make_pod("a", 2))
    result, bodies, _ = bind_pod((BIND, Reply(200, body)), (GET, not_bound), (BIND, Reply(201)))
    assert (result, len(bodies)) == (BindOutcome.BOUND, 2)


def test_the_outcome_is_read_from_a_pod_with_deeply_nested_managed_fields() -> None:
    pod = json.dumps(make_pod("a", 2, node="n1")).encode()
    deep_pod = pod.replace(b'{"', b'{"managedFields":' + b"[" * 5_000 + b"]" * 5_000 + b',"')
    result, bodies, _ = bind_pod((BIND, CUT), (GET, Reply(body=deep_pod)))
    assert (result, len(bodies)) == (BindOutcome.BOUND, 1)


def test_a_response_that_is_no_pod_does_not_settle_a_binding() -> None:
    page, bound = Reply(body={"message": "please log in"}), Reply(body=make_pod("a", 2, node="n1"))
    result, bodies, _ = bind_pod((BIND, CUT), (GET, page), (BIND, CUT), (GET, bound))
    assert (result, len(bodies)) == (BindOutcome.BOUND, 2)


def test_a_binding_names_the_pod_by_its_uid() -> None:
    result, bodies, _ = bind_pod((BIND, Reply(201)))
    assert result is BindOutcome.BOUND
    assert bodies == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "ns", "name": "a", "uid": "uid-a"},
            "target": {"kind": "Node", "name": "n1"},
        }
    ]


CONFLICT = failure_reply(409, "Conflict", "pod a is already assigned to node")


@pytest.mark.parametrize(
    ("response", "current_pod", "outcome"),
    [
        (CONFLICT, make_pod("a", 9, node="n1"), BindOutcome.BOUND),
        (CONFLICT, make_pod("a", 9, node="n2"), BindOutcome.ON_OTHER_NODE),
        (failure_reply(409, "Conflict", "uid mismatch"), make_pod("a", 9, uid="second"), BindOutcome.POD_REPLACED),
        (
            failure_reply(409, "Conflict", "uid mismatch"),
            make_pod("a", 9, uid="second", node="n1"),
            BindOutcome.POD_REPLACED,
        ),
        (SILENCE, make_pod("a", 9, node="n1"), BindOutcome.BOUND),
        (CUT, make_pod("a", 9, node="n1"), BindOutcome.BOUND),
        (failure_reply(504, "Timeout"), make_pod("a", 9, node="n1"), BindOutcome.BOUND),
        (SILENCE, make_pod("a", 9, node="n2"), BindOutcome.ON_OTHER_NODE),
    ],
    ids=[
        "already on this node",
        "on another node",
        "recreated under its name",
        "recreated and bound",
        "timed out but carried out",
        "cut off but carried out",
        "the server timed out but carried it out",
        "timed out, and someone else was quicker",
    ],
)
def test_an_unknown_outcome_of_a_binding_is_read_from_the_pod(
    response: ScriptedResponse, current_pod: dict[str, Any], outcome: BindOutcome
) -> None:
    result, bodies, _ = bind_pod((BIND, response), (GET, Reply(body=current_pod)))
    assert result is outcome
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("responses", "kind"),
    [
        (
            [(BIND, failure_reply(409, "Conflict", "is being deleted")), (GET, Reply(body=make_pod("a", 9)))],
            errors.ConflictError,
        ),
        ([(BIND, failure_reply(403, "Forbidden"))], errors.ForbiddenError),
        ([(BIND, failure_reply(500)), (GET, Reply(body=make_pod("a", 9)))], errors.ServerError),
    ],
    ids=["being deleted, or gated", "not allowed", "a server's fault"],
)
def test_a_rejected_binding_is_an_error_and_is_sent_once(
    responses: list[tuple[str, ScriptedResponse]], kind: type
) -> None:
    result, bodies, _ = bind_pod(*responses)
    assert type(result) is kind
    assert len(bodies) == 1


UNBOUND = Reply(body=make_pod("a", 9))


@pytest.mark.parametrize(
    ("responses", "posts"),
    [
        ([(BIND, SILENCE), (GET, UNBOUND), (BIND, Reply(201))], 2),
        ([(BIND, CUT), (GET, failure_reply(500)), (BIND, CUT), (GET, UNBOUND), (BIND, Reply(201))], 3),
        ([(BIND, failure_reply(504, "Timeout")), (GET, UNBOUND), (GET, UNBOUND), (BIND, Reply(201))], 2),
        ([(BIND, CUT), (GET, UNBOUND), (BIND, CONFLICT), (GET, Reply(body=make_pod("a", 9, node="n1")))], 2),
    ],
    ids=["nothing came of it", "twice", "the server gave up waiting", "it came about after we looked"],
)
def test_fault_11_a_binding_without_a_response_is_sent_to_the_same_node_again(
    responses: list[tuple[str, ScriptedResponse]], posts: int
) -> None:
    result, bodies, _ = bind_pod(*responses)
    assert result is BindOutcome.BOUND
    assert bodies == [bodies[0]] * posts


INTERNAL_ERROR = failure_reply(500, "InternalError")
UNAVAILABLE = failure_reply(503, "ServiceUnavailable")
BOUND = Reply(body=make_pod("a", 9, node="n1"))


@pytest.mark.parametrize(
    ("responses", "outcome", "posts"),
    [
        ([(BIND, INTERNAL_ERROR), (GET, UNBOUND), (BIND, Reply(201))], BindOutcome.BOUND, 2),
        ([(BIND, INTERNAL_ERROR), (GET, BOUND)], BindOutcome.BOUND, 1),
        ([(BIND, UNAVAILABLE), (GET, UNBOUND)] * 3 + [(BIND, Reply(201))], BindOutcome.BOUND, 4),
        ([(BIND, UNAVAILABLE), (GET, UNBOUND)] * 4, errors.ServerError, 4),
        ([(BIND, failure_reply(501, "Unknown")), (GET, UNBOUND)], errors.ServerError, 1),
        ([(BIND, CONFLICT), (GET, UNBOUND)], errors.ConflictError, 1),
    ],
    ids=["at once", "though it was carried out", "three times", "in vain", "another error", "a conflict"],
)
def test_a_binding_that_the_server_rejects_is_sent_again_with_retry_delays(
    responses: list[tuple[str, ScriptedResponse]], outcome: object, posts: int
) -> None:
    """Source: pkg/scheduler/util/utils.go, BindPod, Retriable (1.37)."""
    result, bodies, _ = bind_pod(*responses, retry_delays=BINDING_RETRY_DELAYS)
    assert outcome in (result, type(result))
    assert bodies == [bodies[0]] * posts


def test_a_rejected_binding_is_not_sent_again_if_its_pod_no_longer_fits() -> None:
    async def refuse() -> bool:
        return False

    result, bodies, _ = bind_pod(
        (BIND, INTERNAL_ERROR), (GET, UNBOUND), may_resend=refuse, retry_delays=BINDING_RETRY_DELAYS
    )
    assert (type(result), len(bodies)) == (errors.ServerError, 1)


def test_fault_11_a_binding_waits_for_a_server_that_became_unreachable() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(BIND, SILENCE)
            task = asyncio.create_task(Writer(transport).bind("ns", "a", make_binding("ns", "a", "uid-a", "n1")))
            await asyncio.sleep(1)
            await server.stop()
            await asyncio.sleep(20)
            assert not task.done()
            server.respond(BIND, CONFLICT)
            server.respond(GET, Reply(body=make_pod("a", 9, node="n1")))
            await server.start()
            assert await task is BindOutcome.BOUND

    run(main())


NO_RIGHTS = failure_reply(403, "Forbidden")
NO_SERVICE = failure_reply(503, "ServiceUnavailable")
BOUND_POD = Reply(body=make_pod("a", 9, node="n1"))


@pytest.mark.parametrize(
    "responses",
    [
        [(BIND, CUT), *[(GET, NO_RIGHTS)] * 3, *[(BIND, NO_RIGHTS)] * 3, (GET, BOUND_POD)],
        [(BIND, CUT), *[(GET, NO_SERVICE)] * 4, *[(BIND, NO_SERVICE)] * 2, (GET, BOUND_POD)],
        [(BIND, NO_SERVICE), *[(GET, NO_RIGHTS)] * 2, (BIND, Reply(201))],
        [(BIND, CUT), *[(GET, NO_RIGHTS)] * 12, *[(BIND, NO_RIGHTS)] * 6, (GET, BOUND_POD)],
    ],
    ids=["no rights meanwhile", "no service meanwhile", "no service, then no rights", "no rights after all retries"],
)
def test_a_rejection_after_a_lost_response_leaves_the_outcome_unknown(
    responses: list[tuple[str, ScriptedResponse]],
) -> None:
    result, _, _ = bind_pod(*responses)
    assert result is BindOutcome.BOUND


def test_a_binding_fails_when_the_server_cannot_execute_it_any_more() -> None:
    result, bodies, seconds = bind_pod((BIND, CUT), *[(GET, UNBOUND)] * 20, *[(BIND, NO_RIGHTS)] * 6)
    assert type(result) is errors.ApiError
    assert len(bodies) == 7
    assert 22 <= seconds < 23


@pytest.mark.parametrize(
    ("responses", "expected_seconds"),
    [
        pytest.param([(BIND, CUT)], 22, id="no response: the deadline of the server and the timeout of etcd"),
        pytest.param([(BIND, SILENCE)], 37, id="a timeout of the client"),
        pytest.param([(BIND, failure_reply(504, "Timeout"))], 22, id="the server gave up waiting"),
        pytest.param([(BIND, Reply(503)), (GET, Reply(503))], 22, id="an error of a proxy before the server"),
        pytest.param([(BIND, NO_SERVICE), (GET, NO_SERVICE)], 7, id="an error of the server: only the timeout of etcd"),
    ],
)
def test_a_binding_is_only_read_until_it_cannot_be_executed_any_more_if_the_node_changed(
    responses: list[tuple[str, ScriptedResponse]], expected_seconds: int
) -> None:
    async def main() -> None:
        async def refuse() -> bool:
            return False

        async with ScriptedServer() as server, open_transport(server) as transport:
            for request_line, response in responses:
                server.respond(request_line, response)
            server.respond(GET, *[UNBOUND] * 20)
            start_time = current_loop().time()
            with pytest.raises(errors.ApiError):
                await Writer(transport).bind("ns", "a", make_binding("ns", "a", "uid-a", "n1"), may_resend=refuse)
            assert expected_seconds <= current_loop().time() - start_time < expected_seconds + 1
            assert len(server.requests_to(BIND)) == 1

    run(main())


def test_the_server_gets_the_deadline_of_the_client_for_a_binding() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(BIND, Reply(201))
            await Writer(transport).bind("ns", "a", make_binding("ns", "a", "uid-a", "n1"))
            assert dict(server.requests[0].query) == {"timeout": "15s"}

    run(main())


def test_a_binding_of_unknown_outcome_is_not_forgotten_while_the_server_is_down() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(BIND, SILENCE)
            task = asyncio.create_task(Writer(transport).bind("ns", "a", make_binding("ns", "a", "uid-a", "n1")))
            await asyncio.sleep(0.1)
            await server.stop()
            await asyncio.sleep(1000)
            assert not task.done()
            server.respond(GET, BOUND_POD)
            await server.start()
            assert await task is BindOutcome.BOUND

    run(main())


def test_fault_17_a_binding_with_unknown_outcome_is_not_sent_again_after_the_lease_is_lost() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(BIND, SILENCE)
            server.respond(GET, UNBOUND)
            until = current_loop().time() + 10
            with pytest.raises(errors.FencedError):
                await Writer(transport).bind(
                    "ns", "a", make_binding("ns", "a", "uid-a", "n1"), is_allowed=lambda: current_loop().time() < until
                )
            assert len(server.requests_to(BIND)) == 1

    run(main())


@pytest.mark.parametrize(
    "responses",
    [[(BIND, failure_reply(404, "NotFound"))], [(BIND, CONFLICT), (GET, failure_reply(404, "NotFound"))]],
    ids=["when it was to be bound", "when it was looked for"],
)
def test_fault_14_a_pod_deleted_meanwhile_is_gone(responses: list[tuple[str, ScriptedResponse]]) -> None:
    assert bind_pod(*responses)[0] is BindOutcome.POD_GONE


def test_fault_18_a_binding_that_waited_is_not_sent_after_the_lease_is_lost() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server, qps=1.0, burst=1) as transport:
            server.respond(BIND, Reply(201))
            until = current_loop().time() + 1.5
            writer = Writer(transport)
            tasks = [
                writer.bind(
                    "ns", "a", make_binding("ns", "a", "uid-a", "n1"), is_allowed=lambda: current_loop().time() < until
                )
                for _ in range(4)
            ]
            server.respond(BIND, Reply(201))
            result = await asyncio.gather(*tasks, return_exceptions=True)
            assert result[:2] == [BindOutcome.BOUND, BindOutcome.BOUND]
            assert [type(error) for error in result[2:]] == [errors.FencedError] * 2
            assert len(server.requests_to(BIND)) == 2

    run(main())


def test_fault_18_a_binding_is_not_retried_after_the_lease_is_lost() -> None:
    async def main() -> None:
        async with ScriptedServer() as server, open_transport(server) as transport:
            server.respond(BIND, failure_reply(429, headers={"Retry-After": "20"}))
            until = current_loop().time() + 10
            with pytest.raises(errors.FencedError):
                await Writer(transport).bind(
                    "ns", "a", make_binding("ns", "a", "uid-a", "n1"), is_allowed=lambda: current_loop().time() < until
                )

    run(main())
