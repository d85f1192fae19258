"""Writes, and bindings whose answer is lost or says no."""

import asyncio
from typing import Any

import pytest

from extender.client import errors
from extender.client.transport import MERGE_PATCH
from extender.client.writes import Bound, Writer
from tests.unit.client.scripted import CUT, SILENCE, Answer, Reply, Server, failure, talking
from tests.unit.client.virtual_time import here, run
from tests.unit.client.worlds import a_pod

BIND = "POST /api/v1/namespaces/ns/pods/a/binding"
GET = "GET /api/v1/namespaces/ns/pods/a"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"


def test_the_four_writes_reach_their_objects() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            writer = Writer(transport)
            server.on("POST /apis/resource.k8s.io/v1/namespaces/ns/resourceclaims", Reply(201, {"made": 1}))
            server.on(f"PUT {CLAIM}/status", Reply())
            server.on("PATCH /api/v1/persistentvolumes/pv", Reply())
            server.on("DELETE /api/v1/namespaces/ns/pods/a", Reply())
            assert await writer.create("ResourceClaim", "ns", {"spec": {}}) == b'{"made":1}'
            await writer.update("ResourceClaim", "ns", "c", {"status": {}}, subresource="status")
            await writer.patch("PersistentVolume", "", "pv", {"spec": {}}, content_type=MERGE_PATCH)
            await writer.delete("Pod", "ns", "a", uid="u", resource_version="7", grace_seconds=0)
            patched, removed = server.asked[2:]
            assert patched.headers["content-type"] == "application/merge-patch+json"
            assert removed.body == {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "gracePeriodSeconds": 0,
            }

    run(main())


def bound(*answers: tuple[str, Answer], may_act: Any = lambda: True) -> tuple[Any, list[Any], float]:
    """How binding ns/a with uid-a to n1 ended, the bodies that were posted, and the seconds it took."""

    async def main() -> tuple[Any, list[Any], float]:
        async with Server() as server, talking(server) as transport:
            for what, answer in answers:
                server.on(what, answer)
            began = here().time()
            ended: Any
            try:
                ended = await Writer(transport).bind("ns", "a", "uid-a", "n1", may_act=may_act)
            except errors.ApiError as fault:
                ended = fault
            return ended, [asked.body for asked in server.of(BIND)], here().time() - began

    return run(main())


def test_a_binding_names_the_pod_by_its_uid() -> None:
    ended, bodies, _ = bound((BIND, Reply(201)))
    assert ended is Bound.HERE
    assert bodies == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "ns", "name": "a", "uid": "uid-a"},
            "target": {"kind": "Node", "name": "n1"},
        }
    ]


CONFLICT = failure(409, "Conflict", "pod a is already assigned to node")


@pytest.mark.parametrize(
    ("answer", "found", "ended"),
    [
        (CONFLICT, a_pod("a", 9, node="n1"), Bound.HERE),
        (CONFLICT, a_pod("a", 9, node="n2"), Bound.ELSEWHERE),
        (failure(409, "Conflict", "uid mismatch"), a_pod("a", 9, uid="second"), Bound.REPLACED),
        (failure(409, "Conflict", "uid mismatch"), a_pod("a", 9, uid="second", node="n1"), Bound.REPLACED),
        (SILENCE, a_pod("a", 9, node="n1"), Bound.HERE),
        (CUT, a_pod("a", 9, node="n1"), Bound.HERE),
        (failure(504, "Timeout"), a_pod("a", 9, node="n1"), Bound.HERE),
        (SILENCE, a_pod("a", 9, node="n2"), Bound.ELSEWHERE),
    ],
    ids=[
        "fault 8: already on this node",
        "fault 8: on another node",
        "fault 9: made again under its name",
        "fault 9: made again and bound",
        "fault 10: timed out but carried out",
        "fault 10: cut off but carried out",
        "fault 10: the server timed out but carried it out",
        "timed out, and someone else was quicker",
    ],
)
def test_an_unclear_binding_is_settled_by_looking(answer: Answer, found: dict[str, Any], ended: Bound) -> None:
    result, bodies, _ = bound((BIND, answer), (GET, Reply(body=found)))
    assert result is ended
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (
            [(BIND, failure(409, "Conflict", "is being deleted")), (GET, Reply(body=a_pod("a", 9)))],
            errors.ConflictError,
        ),
        ([(BIND, failure(403, "Forbidden"))], errors.ForbiddenError),
        ([(BIND, failure(500)), (GET, Reply(body=a_pod("a", 9)))], errors.ServerError),
    ],
    ids=["fault 14: being deleted, or gated", "fault 13: not allowed", "a server's fault"],
)
def test_a_binding_that_is_clearly_refused_is_an_error_and_is_sent_once(
    answers: list[tuple[str, Answer]], kind: type
) -> None:
    result, bodies, _ = bound(*answers)
    assert type(result) is kind
    assert len(bodies) == 1


UNBOUND = Reply(body=a_pod("a", 9))


@pytest.mark.parametrize(
    ("answers", "posts"),
    [
        ([(BIND, SILENCE), (GET, UNBOUND), (BIND, Reply(201))], 2),
        ([(BIND, CUT), (GET, failure(500)), (BIND, CUT), (GET, UNBOUND), (BIND, Reply(201))], 3),
        ([(BIND, failure(504, "Timeout")), (GET, UNBOUND), (GET, UNBOUND), (BIND, Reply(201))], 2),
        ([(BIND, CUT), (GET, UNBOUND), (BIND, CONFLICT), (GET, Reply(body=a_pod("a", 9, node="n1")))], 2),
    ],
    ids=["nothing came of it", "twice", "the server gave up waiting", "it came about after we looked"],
)
def test_fault_11_a_binding_whose_answer_was_lost_is_sent_to_the_same_node_again(
    answers: list[tuple[str, Answer]], posts: int
) -> None:
    result, bodies, _ = bound(*answers)
    assert result is Bound.HERE
    assert bodies == [bodies[0]] * posts


def test_fault_11_a_server_that_went_away_after_a_binding_was_sent_is_waited_for() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(BIND, SILENCE)
            task = asyncio.create_task(Writer(transport).bind("ns", "a", "uid-a", "n1"))
            await asyncio.sleep(1)
            await server.stop()
            await asyncio.sleep(20)
            assert not task.done()
            server.on(BIND, CONFLICT)
            server.on(GET, Reply(body=a_pod("a", 9, node="n1")))
            await server.start()
            assert await task is Bound.HERE

    run(main())


def test_fault_11_what_stays_unclear_says_that_it_may_have_been_carried_out() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(BIND, SILENCE)
            task = asyncio.create_task(Writer(transport).bind("ns", "a", "uid-a", "n1"))
            await asyncio.sleep(0.1)
            await server.stop()
            with pytest.raises(errors.UnreachableError) as caught:
                await task
            assert caught.value.sent
            await server.start()

    run(main())


def test_fault_17_an_unclear_binding_is_not_sent_again_once_the_lead_is_lost() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(BIND, SILENCE)
            server.on(GET, UNBOUND)
            until = here().time() + 10
            with pytest.raises(errors.FencedError):
                await Writer(transport).bind("ns", "a", "uid-a", "n1", may_act=lambda: here().time() < until)
            assert len(server.of(BIND)) == 1

    run(main())


@pytest.mark.parametrize(
    "answers",
    [[(BIND, failure(404, "NotFound"))], [(BIND, CONFLICT), (GET, failure(404, "NotFound"))]],
    ids=["when it was to be bound", "when it was looked for"],
)
def test_fault_14_a_pod_deleted_meanwhile_is_gone(answers: list[tuple[str, Answer]]) -> None:
    assert bound(*answers)[0] is Bound.GONE


def test_fault_18_a_binding_that_waited_for_its_turn_is_not_sent_once_the_lead_is_lost() -> None:
    async def main() -> None:
        async with Server() as server, talking(server, qps=1.0, burst=1) as transport:
            server.on(BIND, Reply(201))
            until = here().time() + 1.5
            writer = Writer(transport)
            tasks = [writer.bind("ns", "a", "uid-a", "n1", may_act=lambda: here().time() < until) for _ in range(4)]
            server.on(BIND, Reply(201))
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert ended[:2] == [Bound.HERE, Bound.HERE]
            assert [type(fault) for fault in ended[2:]] == [errors.FencedError] * 2
            assert len(server.of(BIND)) == 2

    run(main())


def test_fault_18_a_binding_turned_away_with_a_time_is_not_repeated_after_the_lead_is_lost() -> None:
    async def main() -> None:
        async with Server() as server, talking(server) as transport:
            server.on(BIND, failure(429, headers={"Retry-After": "20"}))
            until = here().time() + 10
            with pytest.raises(errors.FencedError):
                await Writer(transport).bind("ns", "a", "uid-a", "n1", may_act=lambda: here().time() < until)

    run(main())
