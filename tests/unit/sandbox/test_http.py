"""Tests of the API over HTTP: paths, verbs, forms of bodies and answers, events in two forms, reviews, discovery."""

import asyncio

import aiohttp
import pytest

from extender.sandbox.nodes import Pace
from extender.sandbox.reviews import Reviews
from extender.sandbox.server import Sandbox
from tests.unit.sandbox.calls import PODS, Client, HandClock, a_binding, a_node, a_pod, run, told

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def test_an_object_is_created_read_changed_and_deleted() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        made = await client.ask("POST", PODS, a_pod())
        assert (made.code, made.body["kind"]) == (201, "Pod")
        assert await client.get(f"{PODS}/web") == made.body
        patch = {"metadata": {"labels": {"a": "b"}}}
        patched = await client.ask("PATCH", f"{PODS}/web", patch, "application/strategic-merge-patch+json")
        assert patched.body["metadata"]["labels"] == {"a": "b"}
        stale = await client.ask("PUT", f"{PODS}/web", made.body)
        assert (stale.code, stale.body["reason"]) == (409, "Conflict")
        assert (await client.ask("DELETE", f"{PODS}/web")).body["kind"] == "Pod"
        gone = await client.ask("GET", f"{PODS}/web")
        assert gone.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'pods "web" not found',
            "reason": "NotFound",
            "details": {"name": "web", "kind": "pods"},
            "code": 404,
        }

    run(scenario)


def test_some_kinds_answer_a_deletion_with_a_status() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        made = await client.ask("POST", path, {"metadata": {"name": "l"}})
        answer = await client.ask("DELETE", f"{path}/l")
        uid = made.body["metadata"]["uid"]
        details = {"name": "l", "kind": "leases", "uid": uid, "group": "coordination.k8s.io"}
        assert (answer.code, answer.body["status"], answer.body["details"]) == (200, "Success", details)

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/unicorns", 404),
        ("GET", "/apis/apps/v2/replicasets", 404),
        ("GET", "/api/v1/pods/web", 404),
        ("GET", f"{PODS}/web/unicorn", 404),
        ("GET", f"{PODS}/web/binding", 405),
        ("POST", "/api/v1/pods", 405),
        ("PUT", PODS, 405),
        ("GET", "/", 404),
    ],
)
def test_a_path_or_verb_that_is_not_there_is_refused(method: str, path: str, code: int) -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        answer = await client.ask(method, path)
        assert (answer.code, answer.body["kind"]) == (code, "Status")

    run(scenario)


@pytest.mark.parametrize(
    ("method", "body", "media", "code"),
    [
        ("POST", b"{", "application/json", 400),
        ("POST", b"[]", "application/json", 400),
        ("POST", b"k8s\x00", "application/vnd.kubernetes.protobuf", 415),
        ("PATCH", b"{}", "application/json-patch+json", 400),
        ("PATCH", b"kind: Pod", "application/apply-patch+yaml", 415),
        ("PATCH", b"{}", "application/json", 415),
    ],
    ids=[
        "half an object",
        "a list",
        "protobuf",
        "operations that are no list",
        "server-side apply",
        "a patch of no kind",
    ],
)
def test_a_body_that_cannot_be_read_is_refused(method: str, body: bytes, media: str, code: int) -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod())
        path = f"{PODS}/web" if method == "PATCH" else PODS
        assert (await client.ask(method, path, body, media)).code == code

    run(scenario)


def test_an_answer_that_cannot_be_written_is_refused() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        assert (await client.ask("GET", PODS, Accept="application/vnd.kubernetes.protobuf")).code == 406
        both = "application/vnd.kubernetes.protobuf,application/json"
        assert (await client.ask("GET", PODS, Accept=both)).code == 200

    run(scenario)


def test_events_are_the_same_objects_in_both_forms() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        regarding = {"kind": "Pod", "name": "web", "namespace": "default", "uid": "u1"}
        event = {"metadata": {"name": "e"}, "note": "hello", "reason": "Scheduled", "regarding": regarding}
        made = await client.ask("POST", EVENTS, {**event, "reportingController": "sched", "type": "Normal"})
        assert (made.body["apiVersion"], made.body["note"]) == ("events.k8s.io/v1", "hello")
        core = await client.get("/api/v1/namespaces/default/events/e")
        assert (core["apiVersion"], core["message"], core["involvedObject"]) == ("v1", "hello", regarding)
        series = {"series": {"count": 2}, "note": "again"}
        await client.ask("PATCH", f"{EVENTS}/e", series, "application/strategic-merge-patch+json")
        (found,) = (await client.get("/api/v1/events?fieldSelector=involvedObject.uid%3Du1"))["items"]
        assert (found["message"], found["series"]) == ("again", {"count": 2})
        (found,) = (await client.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.uid%3Du1"))["items"]
        assert (found["note"], found["regarding"]["uid"]) == ("again", "u1")

    run(scenario)


def test_a_table_has_columns_and_rows() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod(nodeName="n1"))
        clock = sandbox.api.clock
        assert isinstance(clock, HandClock)
        clock.seconds += 200
        table = await client.get(PODS, Accept=TABLE)
        heads = [head["name"] for head in table["columnDefinitions"] if head["priority"] == 0]
        assert heads == ["Name", "Ready", "Status", "Restarts", "Age"]
        (row,) = table["rows"]
        assert row["cells"] == ["web", "0/1", "Pending", "0", "3m20s", "<none>", "n1", "<none>", "<none>"]
        assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "web")
        whole = await client.get(f"{PODS}/web?includeObject=Object", Accept=TABLE)
        assert whole["rows"][0]["object"]["kind"] == "Pod"

    run(scenario)


def test_a_watch_of_a_table_sends_its_columns_once() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        for name in "ab":
            sandbox.api.add(a_node(name))
        async with client.watch("/api/v1/nodes?watch=true", Accept=TABLE) as events:
            first, second = await anext(events), await anext(events)
        assert len(first["object"]["columnDefinitions"]) == 10
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:3] == ["b", "Unknown", "<none>"]

    run(scenario)


def test_reviews_allow_everything_unless_told_otherwise() -> None:
    tokens, accesses = (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    )

    async def open_door(_: Sandbox, client: Client) -> None:
        token = await client.ask("POST", tokens, {"spec": {"token": "t"}})
        access = await client.ask("POST", accesses, {"spec": {"user": "x"}})
        assert (token.code, token.body["status"]["authenticated"]) == (201, True)
        assert access.body["status"]["allowed"] is True

    async def guarded_door(_: Sandbox, client: Client) -> None:
        good = await client.ask("POST", tokens, {"spec": {"token": "good"}})
        bad = await client.ask("POST", tokens, {"spec": {"token": "bad"}})
        assert good.body["status"] == {"authenticated": True, "user": {"username": "ann"}}
        assert "authenticated" not in bad.body["status"]
        access = await client.ask("POST", accesses, {"spec": {"user": "bob"}})
        assert access.body["status"] == {"allowed": False, "reason": "only ann"}

    run(open_door)
    known = Reviews(
        user=lambda token: {"username": "ann"} if token == "good" else None,  # noqa: S105  a word, not a secret
        allows=lambda spec: (spec.get("user") == "ann", "only ann"),
    )
    run(guarded_door, reviews=known)


def test_the_server_describes_itself() -> None:
    async def scenario(_: Sandbox, client: Client) -> None:
        assert (await client.get("/version"))["gitVersion"] == "v1.36.3"
        assert (await client.get("/api"))["versions"] == ["v1"]
        groups = [group["name"] for group in (await client.get("/apis"))["groups"]]
        assert {"apps", "policy", "events.k8s.io", "resource.k8s.io", "authorization.k8s.io"} <= set(groups)
        core = {entry["name"]: entry for entry in (await client.get("/api/v1"))["resources"]}
        assert (core["pods"]["shortNames"], core["nodes"]["namespaced"]) == (["po"], False)
        assert (core["pods/eviction"]["group"], core["pods/eviction"]["kind"]) == ("policy", "Eviction")
        assert "pods/binding" in core
        assert "pods/status" in core
        assert await client.get("/readyz?verbose") == b"ok"

    run(scenario)


def test_the_kubeconfig_leads_to_the_server() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        assert f"server: {client.url}\n" in sandbox.kubeconfig()
        assert client.url.startswith("http://127.0.0.1:")
        with pytest.raises(RuntimeError, match="started already"):
            await sandbox.start()

    run(scenario)
    with pytest.raises(RuntimeError, match="is not started"):
        Sandbox().kubeconfig()


def test_a_sandbox_that_was_stopped_goes_on_at_the_same_port_with_its_objects() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        version = sandbox.api.add(a_pod())["metadata"]["resourceVersion"]
        port = int(sandbox.url.rpartition(":")[2])
        await sandbox.stop()
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(PODS)
        await sandbox.start(port)
        async with client.watch(f"{PODS}?watch=true&resourceVersion={version}") as events:
            sandbox.api.add(a_pod("later"))
            assert told(await anext(events)) == ("ADDED", "later")

    run(scenario)


def test_several_sandboxes_run_beside_each_other() -> None:
    async def scenario(first: Sandbox, client: Client) -> None:
        async with Sandbox() as second:
            second.api.add(a_pod())
            assert second.url != first.url
            assert (await client.get(PODS))["items"] == []

    run(scenario)


def test_nodes_are_played_while_the_sandbox_runs() -> None:
    async def scenario(sandbox: Sandbox, client: Client) -> None:
        sandbox.api.add(a_pod())
        async with client.watch(f"{PODS}?watch=true") as events:
            await anext(events)
            await client.ask("POST", f"{PODS}/web/binding", a_binding("n1"))
            await client.ask("DELETE", f"{PODS}/web?gracePeriodSeconds=1")
            seen = [await anext(events)]
            while seen[-1]["type"] != "DELETED":
                seen.append(await asyncio.wait_for(anext(events), 5))
        assert [event["object"]["spec"]["nodeName"] for event in seen] == ["n1"] * len(seen)

    run(scenario, pace=Pace())
