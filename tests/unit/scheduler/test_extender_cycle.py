"""Scheduling cycles with HTTP extenders: the requests, and the effect of the responses."""

import asyncio
from typing import Any

import msgspec
import pytest

from extender.app import wiring
from extender.client.errors import ServerError
from extender.config.model import ManagedResource
from extender.plugins.default_binder import DefaultBinder
from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import Reply, Stream
from tests.unit.cycle.fakes import FakeScore, RejectingFilter, make_profile
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import (
    FILTER,
    ExtenderHarness,
    create_pending_pod,
    failure_messages,
    filter_response,
    make_harness,
    prioritize_response,
    run_with_extenders,
)

_WITH_GPU = {"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}

# -- filter


def test_an_extender_with_a_node_cache_gets_the_names_of_the_feasible_nodes() -> None:
    harness = make_harness(RejectingFilter("R", "n2"))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response("n3")))
        await extender_harness.run_until_idle()
        (body,) = extender_harness.request_bodies("a/filter")
        assert set(body) == {"Pod", "Nodes", "NodeNames"}
        assert (body["Nodes"], body["NodeNames"]) == (None, ["n1", "n3"])
        assert body["Pod"]["metadata"]["uid"] == "uid-default-web"
        assert body["Pod"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
        assert extender_harness.server.requests[0].headers["content-type"] == "application/json"

    run_with_extenders(harness, [FILTER], test)
    assert harness.node_of(pod) == "n3"


def test_an_extender_without_a_node_cache_gets_and_returns_whole_nodes() -> None:
    harness = make_harness(names=("n1", "n2"))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond(
            "POST /a/filter", Reply(body={"Nodes": {"items": [{"metadata": {"name": "n2"}}]}})
        )
        await extender_harness.run_until_idle()
        (body,) = extender_harness.request_bodies("a/filter")
        assert body["NodeNames"] is None
        assert body["Nodes"]["metadata"] == {}
        assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["n1", "n2"]
        assert body["Nodes"]["items"][0]["status"]["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}

    run_with_extenders(harness, [{"filter_verb": "filter"}], test)
    assert harness.node_of(pod) == "n2"


def test_extenders_filter_one_after_another_ignorable_ones_last() -> None:
    """Source: pkg/scheduler/scheduler.go, buildExtenders; pkg/scheduler/schedule_one.go, findNodesThatPassExtenders
    (1.36).
    """
    harness = make_harness()
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /b/filter", Reply(body=filter_response("n2", "n3")))
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response("n3")))
        await extender_harness.run_until_idle()
        assert extender_harness.request_bodies("b/filter")[0]["NodeNames"] == ["n1", "n2", "n3"]
        assert extender_harness.request_bodies("a/filter")[0]["NodeNames"] == ["n2", "n3"]
        assert extender_harness.calls == ["b/filter", "a/filter"]

    run_with_extenders(harness, [{**FILTER, "ignorable": True}, FILTER], test)
    assert harness.node_of(pod) == "n3"


def test_when_no_node_is_left_no_further_extender_is_called() -> None:
    harness = make_harness()
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response()))
        await extender_harness.run_until_idle()
        assert extender_harness.calls == ["a/filter"]

    run_with_extenders(harness, [FILTER, FILTER], test)


def test_an_extender_is_not_called_for_pods_without_its_resources() -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.IsInterested (1.36)."""
    harness = make_harness(names=("n1",))
    limits = {"containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": "0"}}}]}
    plain, inits = make_pod("plain"), make_pod("init", spec={"initContainers": limits["containers"]})
    overhead = make_pod("overhead", spec={"overhead": {"example.com/gpu": "1"}})
    for pod in (plain, inits, overhead, make_pod("limit", spec=limits)):
        harness.create(pod)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/filter", *[Reply(body=filter_response("n1"))] * 2)
        await extender_harness.run_until_idle()
        assert [body["Pod"]["metadata"]["name"] for body in extender_harness.request_bodies("a/filter")] == [
            "init",
            "limit",
        ]

    run_with_extenders(harness, [{**FILTER, "managed_resources": (ManagedResource("example.com/gpu"),)}], test)
    assert {harness.node_of(pod) for pod in (plain, inits, overhead)} == {"n1"}


def test_backoffs_of_other_pods_end_during_an_extender_call() -> None:
    """The call does not block the event loop; only the next pod waits."""
    harness = make_harness()
    other = make_pod("other", requests={"cpu": "1"})
    harness.api.errors["binding"] = [ServerError("etcd is down", 500)]
    harness.create(other)

    async def test(extender_harness: ExtenderHarness) -> None:
        await extender_harness.run_until_idle()
        assert harness.queue.count_pending_pods()["backoff"] == 1
        harness.create(make_pod("web", requests={"cpu": "1"}, spec={"containers": [_WITH_GPU]}))
        extender_harness.server.respond("POST /a/filter", Stream([2.5, msgspec.json.encode(filter_response("n1"))]))
        turn = asyncio.create_task(harness.scheduler.schedule_one())
        harness.clock.seconds += 20
        while not harness.queue.count_pending_pods()["active"]:
            assert not turn.done()
            await asyncio.sleep(0.1)
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [{**FILTER, "managed_resources": (ManagedResource("example.com/gpu"),)}], test)
    assert harness.node_of(other)


def test_rejections_of_extenders_and_plugins_are_counted_together() -> None:
    """UNRESOLVABLE wins over UNSCHEDULABLE; an omitted node has no reason; a node that does not exist counts.

    Source: pkg/scheduler/schedule_one.go, findNodesThatPassExtenders; pkg/scheduler/framework/interface.go,
    NewDefaultNodeToStatus (1.36).
    """
    harness = make_harness(RejectingFilter("R", "n1"), names=("n1", "n2", "n3", "n4", "n5"))
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        answer = filter_response(
            failed={"n2": "licence in use", "n3": "no licence", "x": "gone"}, final={"n3": "never", "n4": "never"}
        )
        extender_harness.server.respond("POST /a/filter", Reply(body=answer))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [FILTER], test)
    assert failure_messages(harness) == ["0/5 nodes are available: 1 gone, 1 licence in use, 1 refused by R, 2 never."]


def test_a_pod_that_extenders_reject_is_moved_by_any_event() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.findNodesThatFitPod (1.36)."""
    harness = make_harness(RejectingFilter("R"), names=("n1",))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond(
            "POST /a/filter", Reply(body=filter_response()), Reply(body=filter_response("n1"))
        )
        await extender_harness.run_until_idle()
        assert failure_messages(harness) == ["0/1 nodes are available:"]
        assert harness.queue.count_pending_pods()["unschedulable"] == 1
        harness.dispatcher.on_update(make_node("n1"), make_node("n1", labels={"any": "thing"}))
        await extender_harness.run_until_idle(turns=2)

    run_with_extenders(harness, [FILTER], test)
    assert harness.node_of(pod) == "n1"


def test_a_nominated_pod_is_first_tried_on_its_node_alone() -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.evaluateNominatedNode (1.36)."""
    harness = make_harness()
    pod = create_pending_pod(harness, status={"nominatedNodeName": "n2"})

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond(
            "POST /a/filter", Reply(body=filter_response()), Reply(body=filter_response("n3"))
        )
        await extender_harness.run_until_idle()
        assert [body["NodeNames"] for body in extender_harness.request_bodies("a/filter")] == [
            ["n2"],
            ["n1", "n2", "n3"],
        ]

    run_with_extenders(harness, [FILTER], test)
    assert harness.node_of(pod) == "n3"


# -- prioritize

RATED = {"prioritize_verb": "prioritize", "weight": 2, "node_cache_capable": True}


@pytest.mark.parametrize(
    ("answer", "node"),
    [
        (prioritize_response(n1=0, n2=3, n3=0), "n2"),
        (prioritize_response(n1=0, n2=2, n3=0), "n1"),
        (prioritize_response(n2=-1, n1=-9), "n3"),
        (prioritize_response(n3=900), "n3"),
        (prioritize_response(unknown=10), "n1"),
        (None, "n1"),
        ([{"host": "n3", "SCORE": 10}], "n3"),
        ([{"Host": "n2", "Score": 2}, {"Host": "n2", "Score": 2}], "n2"),
        ([{"Host": "n2", "Score": 2**63}], "n1"),
    ],
    ids=[
        "a score counts ten times its weight",
        "beside those of plugins",
        "scores may be negative",
        "and beyond the range",
        "unknown hosts do not count",
        "null is an empty list",
        "keys in any case",
        "a host named twice counts twice",
        "a score beyond 64 bits is no answer",
    ],
)
def test_scores_are_added_to_those_of_plugins(answer: Any, node: str) -> None:
    """Source: pkg/scheduler/schedule_one.go, prioritizeNodes; kube-scheduler/extender/v1/types.go, HostPriorityList
    (1.36).
    """
    harness = make_harness(FakeScore("X", {"n1": 50, "n2": 0, "n3": 0}))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/prioritize", Reply(body=answer))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [RATED], test)
    assert harness.node_of(pod) == node


def test_extenders_score_concurrently() -> None:
    """Both responses take two seconds, and so does the attempt.

    Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36).
    """
    harness = make_harness()
    pod = create_pending_pod(harness)
    taken: list[float] = []

    async def test(extender_harness: ExtenderHarness) -> None:
        text = b'[{"Host": "n2", "Score": 1}]'
        extender_harness.server.respond("POST /a/prioritize", Stream([2.0, text]))
        extender_harness.server.respond("POST /b/prioritize", Stream([2.0, text]))
        await extender_harness.run_until_idle()
        taken.extend(each.at for each in extender_harness.server.requests)

    run_with_extenders(harness, [RATED, RATED], test)
    assert harness.node_of(pod) == "n2"
    assert taken[0] == taken[1]


def test_the_only_node_is_not_scored() -> None:
    """Source: pkg/scheduler/schedule_one.go, prioritizeNodes (1.36)."""
    harness = make_harness(names=("n1",))
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        await extender_harness.run_until_idle()
        assert extender_harness.calls == []

    run_with_extenders(harness, [RATED], test)
    assert harness.node_of(pod) == "n1"


# -- nodes returned by extenders


def test_returned_nodes_are_scored_as_returned_and_without_pods() -> None:
    """kube-scheduler builds a new NodeInfo from the response: n1, half full, looks empty.

    Source: pkg/scheduler/extender.go, HTTPExtender.Filter (1.36).
    """
    profile = make_profile(wiring.build_setup().first_profile.plugins["NodeResourcesFit"], DefaultBinder())
    other = make_pod("other", node="n1", requests={"cpu": "2"})
    harness = SchedulerHarness(make_node("n1", labels={"disk": "old"}), make_node("n2"), other, profile=profile)
    pod = create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        def given(name: str, cpu: str) -> dict[str, Any]:
            return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "9"}}}

        answer = {"Nodes": {"items": [given("n1", "5"), given("n2", "4")]}}
        extender_harness.server.respond("POST /a/filter", Reply(body=answer))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [{"filter_verb": "filter"}], test)
    assert harness.node_of(pod) == "n1"


def test_the_next_extender_gets_the_nodes_that_the_previous_one_returned() -> None:
    harness = make_harness()
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        node = {"metadata": {"name": "n2"}, "unknown": [1]}
        extender_harness.server.respond("POST /a/filter", Reply(body={"Nodes": {"items": [node]}}))
        extender_harness.server.respond("POST /b/filter", Reply(body={"Nodes": {"items": [node]}}))
        await extender_harness.run_until_idle()
        assert extender_harness.request_bodies("b/filter")[0]["Nodes"]["items"] == [node]

    run_with_extenders(harness, [{"filter_verb": "filter"}] * 2, test)


def test_names_from_an_extender_without_a_node_cache_are_ignored() -> None:
    """Source: pkg/scheduler/extender.go, HTTPExtender.Filter (1.36)."""
    harness = make_harness()
    create_pending_pod(harness)

    async def test(extender_harness: ExtenderHarness) -> None:
        extender_harness.server.respond("POST /a/filter", Reply(body=filter_response("n1", failed={"n1": "no"})))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [{"filter_verb": "filter"}], test)
    assert failure_messages(harness) == ["0/3 nodes are available: 1 no."]


# -- the world goes on


def meanwhile(
    harness: SchedulerHarness, happens: Any, *, passes: tuple[str, ...], rates: dict[str, int] | None = None
) -> None:
    """Let an extender pass nodes, and call *happens* before its response arrives."""

    async def test(extender_harness: ExtenderHarness) -> None:
        async def answer_late() -> None:
            while not extender_harness.server.requests:
                await asyncio.sleep(0)
            happens()

        late = asyncio.create_task(answer_late())
        text = msgspec.json.encode(filter_response(*passes))
        extender_harness.server.respond("POST /a/filter", Stream([1.0, text]))
        if rates:
            extender_harness.server.respond("POST /a/prioritize", Reply(body=prioritize_response(**rates)))
        await extender_harness.run_until_idle()
        await late

    run_with_extenders(harness, [{**FILTER, **RATED} if rates else FILTER], test)


def test_a_node_that_fills_up_during_the_call_is_not_selected() -> None:
    harness = SchedulerHarness(make_node("n1"), make_node("n2"), make_node("n3"))
    pod = create_pending_pod(harness)
    other = make_pod("other", node="n2", requests={"cpu": "4"})

    meanwhile(harness, lambda: harness.dispatcher.on_add(other), passes=("n2", "n3"), rates={"n2": 10, "n3": 9})

    assert harness.node_of(pod) == "n3"


def test_if_no_node_fits_any_more_the_pod_is_retried_soon() -> None:
    harness = SchedulerHarness(make_node("n1"), make_node("n2"))
    pod = create_pending_pod(harness)

    meanwhile(harness, lambda: harness.dispatcher.on_delete(make_node("n2")), passes=("n2",))

    assert harness.node_of(pod) == ""
    assert failure_messages(harness) == [
        "the cluster changed during the extender calls, and the pod no longer fits any node that passed them"
    ]
    assert harness.queue.count_pending_pods()["backoff"] == 1


def test_a_pod_that_is_deleted_during_the_call_leaves_the_queue() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = create_pending_pod(harness)

    meanwhile(harness, lambda: harness.dispatcher.on_delete(pod), passes=("n1",))

    assert harness.events.recorded == []
    assert (dict(harness.cache.assigned_pods), sum(harness.queue.count_pending_pods().values())) == ({}, 0)


def test_a_pod_that_is_bound_elsewhere_during_the_call_leaves_the_queue() -> None:
    harness = SchedulerHarness(make_node("n1"), make_node("n2"))
    pod = create_pending_pod(harness)
    bound = make_pod("web", node="n2", requests={"cpu": "1"})

    meanwhile(harness, lambda: harness.dispatcher.on_update(pod, bound), passes=("n1",))

    assert harness.api.calls_to("binding") == []
    assert harness.cache.assigned_pods[pod.metadata.uid].node_name == "n2"
