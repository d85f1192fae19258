"""The API over HTTP: paths, verbs, media types, both versions of events, reviews and discovery."""

import asyncio

import aiohttp
import pytest

from extender.config.releases import DEFAULT_RELEASE
from extender.fake_apiserver.endpoints.discovery import VERSION
from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.registry.reviews import ReviewRules
from extender.fake_apiserver.server import FakeApiServer
from tests.unit.fake_apiserver.api_client import PODS, Client, event_summary, run
from tests.unit.fake_apiserver.builders import ManualClock, make_binding, make_node, make_pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def test_an_object_is_created_read_changed_and_deleted() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        created = await client.request("POST", PODS, make_pod())
        assert (created.code, created.body["kind"]) == (201, "Pod")
        assert await client.get(f"{PODS}/web") == created.body
        patch = {"metadata": {"labels": {"a": "b"}}}
        patched = await client.request("PATCH", f"{PODS}/web", patch, "application/strategic-merge-patch+json")
        assert patched.body["metadata"]["labels"] == {"a": "b"}
        stale = await client.request("PUT", f"{PODS}/web", created.body)
        assert (stale.code, stale.body["reason"]) == (409, "Conflict")
        assert (await client.request("DELETE", f"{PODS}/web")).body["kind"] == "Pod"
        missing = await client.request("GET", f"{PODS}/web")
        assert missing.body == {
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


def test_some_resources_return_a_status_on_deletion() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        created = await client.request("POST", path, {"metadata": {"name": "l"}})
        response = await client.request("DELETE", f"{path}/l")
        uid = created.body["metadata"]["uid"]
        details = {"name": "l", "kind": "leases", "uid": uid, "group": "coordination.k8s.io"}
        assert (response.code, response.body["status"], response.body["details"]) == (200, "Success", details)

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
def test_an_unknown_path_or_verb_is_rejected(method: str, path: str, code: int) -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        response = await client.request(method, path)
        assert (response.code, response.body["kind"]) == (code, "Status")

    run(scenario)


@pytest.mark.parametrize(
    ("method", "body", "media", "code"),
    [
        ("POST", b"{", "application/json", 400),
        ("POST", b"[]", "application/json", 400),
        ("POST", b'{"metadata": 5}', "application/json", 400),
        ("PATCH", b'{"metadata": "x"}', "application/merge-patch+json", 400),
        ("POST", b"k8s\x00", "application/vnd.kubernetes.protobuf", 415),
        ("PATCH", b"{}", "application/json-patch+json", 400),
        ("PATCH", b"kind: Pod", "application/apply-patch+yaml", 415),
        ("PATCH", b"{}", "application/json", 415),
    ],
    ids=[
        "half an object",
        "a list",
        "metadata that is a number",
        "a patch of metadata with a text",
        "protobuf",
        "operations that are no list",
        "server-side apply",
        "a patch of no kind",
    ],
)
def test_an_invalid_body_is_rejected(method: str, body: bytes, media: str, code: int) -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod())
        path = f"{PODS}/web" if method == "PATCH" else PODS
        assert (await client.request(method, path, body, media)).code == code

    run(scenario)


def test_a_body_in_protobuf_is_rejected_with_the_commands_that_work() -> None:
    """kubectl sends protobuf in `create namespace`, and shows the message."""

    async def scenario(_: FakeApiServer, client: Client) -> None:
        response = await client.request("POST", "/api/v1/namespaces", b"k8s\x00", "application/vnd.kubernetes.protobuf")
        assert response.body["message"] == (
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml; use kubectl apply, or add --dry-run=client --output=yaml | kubectl apply --filename=- "
            "to the command"
        )

    run(scenario)


def test_an_unsupported_accept_header_is_rejected() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        assert (await client.request("GET", PODS, Accept="application/vnd.kubernetes.protobuf")).code == 406
        both = "application/vnd.kubernetes.protobuf,application/json"
        assert (await client.request("GET", PODS, Accept=both)).code == 200

    run(scenario)


def test_events_are_the_same_objects_in_both_versions() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        regarding = {"kind": "Pod", "name": "web", "namespace": "default", "uid": "u1"}
        event = {"metadata": {"name": "e"}, "note": "hello", "reason": "Scheduled", "regarding": regarding}
        created = await client.request("POST", EVENTS, {**event, "reportingController": "sched", "type": "Normal"})
        assert (created.body["apiVersion"], created.body["note"]) == ("events.k8s.io/v1", "hello")
        core = await client.get("/api/v1/namespaces/default/events/e")
        assert (core["apiVersion"], core["message"], core["involvedObject"]) == ("v1", "hello", regarding)
        series = {"series": {"count": 2}, "note": "again"}
        await client.request("PATCH", f"{EVENTS}/e", series, "application/strategic-merge-patch+json")
        (event,) = (await client.get("/api/v1/events?fieldSelector=involvedObject.uid%3Du1"))["items"]
        assert (event["message"], event["series"]) == ("again", {"count": 2})
        (event,) = (await client.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.uid%3Du1"))["items"]
        assert (event["note"], event["regarding"]["uid"]) == ("again", "u1")

    run(scenario)


def test_a_table_has_columns_and_rows() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod(nodeName="n1"))
        clock = server.api.clock
        assert isinstance(clock, ManualClock)
        clock.seconds += 200
        table = await client.get(PODS, Accept=TABLE)
        headers = [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]
        assert headers == ["Name", "Ready", "Status", "Restarts", "Age"]
        (row,) = table["rows"]
        assert row["cells"] == ["web", "0/1", "Pending", "0", "3m20s", "<none>", "n1", "<none>", "<none>"]
        assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "web")
        whole = await client.get(f"{PODS}/web?includeObject=Object", Accept=TABLE)
        assert whole["rows"][0]["object"]["kind"] == "Pod"

    run(scenario)


def test_a_watch_of_a_table_sends_its_columns_once() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        for name in "ab":
            server.api.create_from_manifest(make_node(name))
        async with client.watch("/api/v1/nodes?watch=true", Accept=TABLE) as events:
            first, second = await anext(events), await anext(events)
        assert len(first["object"]["columnDefinitions"]) == 10
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:3] == ["b", "Unknown", "<none>"]

    run(scenario)


def test_reviews_allow_everything_by_default() -> None:
    tokens, accesses = (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    )

    async def default_rules(_: FakeApiServer, client: Client) -> None:
        token = await client.request("POST", tokens, {"spec": {"token": "t"}})
        access = await client.request("POST", accesses, {"spec": {"user": "x"}})
        assert (token.code, token.body["status"]["authenticated"]) == (201, True)
        assert access.body["status"]["allowed"] is True

    async def custom_rules(_: FakeApiServer, client: Client) -> None:
        good = await client.request("POST", tokens, {"spec": {"token": "good"}})
        bad = await client.request("POST", tokens, {"spec": {"token": "bad"}})
        assert good.body["status"] == {"authenticated": True, "user": {"username": "ann"}}
        assert "authenticated" not in bad.body["status"]
        access = await client.request("POST", accesses, {"spec": {"user": "bob"}})
        assert access.body["status"] == {"allowed": False, "reason": "only ann"}

    run(default_rules)
    rules = ReviewRules(
        authenticate=lambda token: {"username": "ann"} if token == "good" else None,  # noqa: S105  a word, not a secret
        authorize=lambda spec: (spec.get("user") == "ann", "only ann"),
    )
    run(custom_rules, reviews=rules)


def test_the_version_is_that_of_the_default_release_so_that_all_commands_emulate_it() -> None:
    assert VERSION.startswith(f"v{DEFAULT_RELEASE.version}.")


def test_the_server_has_discovery_documents() -> None:
    async def scenario(_: FakeApiServer, client: Client) -> None:
        assert (await client.get("/version"))["gitVersion"] == "v1.37.2"
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


def test_the_kubeconfig_has_the_server_s_address() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        assert f"server: {client.url}\n" in server.kubeconfig()
        assert client.url.startswith("http://127.0.0.1:")
        with pytest.raises(RuntimeError, match="started already"):
            await server.start()

    run(scenario)
    with pytest.raises(RuntimeError, match="is not started"):
        FakeApiServer().kubeconfig()


def test_a_restarted_server_has_the_same_port_and_objects() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        version = server.api.create_from_manifest(make_pod())["metadata"]["resourceVersion"]
        port = int(server.url.rpartition(":")[2])
        await server.stop()
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(PODS)
        await server.start(port)
        async with client.watch(f"{PODS}?watch=true&resourceVersion={version}") as events:
            server.api.create_from_manifest(make_pod("later"))
            assert event_summary(await anext(events)) == ("ADDED", "later")

    run(scenario)


def test_several_servers_can_run_at_once() -> None:
    async def scenario(first: FakeApiServer, client: Client) -> None:
        async with FakeApiServer() as second:
            second.api.create_from_manifest(make_pod())
            assert second.url != first.url
            assert (await client.get(PODS))["items"] == []

    run(scenario)


def test_kubelets_run_with_the_server() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod())
        async with client.watch(f"{PODS}?watch=true") as events:
            await anext(events)
            await client.request("POST", f"{PODS}/web/binding", make_binding("n1"))
            await client.request("DELETE", f"{PODS}/web?gracePeriodSeconds=1")
            seen = [await anext(events)]
            while seen[-1]["type"] != "DELETED":
                seen.append(await asyncio.wait_for(anext(events), 5))
        assert [event["object"]["spec"]["nodeName"] for event in seen] == ["n1"] * len(seen)

    run(scenario, kubelet_timing=KubeletTiming())
