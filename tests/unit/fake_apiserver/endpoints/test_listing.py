"""Tests of lists over HTTP: pages, selectors, versions."""

import pytest

from extender.fake_apiserver.endpoints.listing import get_field_value, parse_selectors
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.resources import RESOURCES_BY_KIND
from extender.fake_apiserver.server import FakeApiServer
from tests.unit.fake_apiserver.api_client import PODS, Client, run
from tests.unit.fake_apiserver.builders import Object, make_binding, make_node, make_pod


def names(listed: Object) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def some_pods(server: FakeApiServer) -> None:
    for number in range(1, 6):
        server.api.create_from_manifest(
            {**make_pod(), "metadata": {"name": f"p{number}", "labels": {"n": str(number)}}}
        )


def test_a_list_carries_its_version_and_whole_objects() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        listed = await client.get("/api/v1/pods")
        assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
        assert listed["metadata"] == {"resourceVersion": str(server.store.resource_version)}
        pod = server.store.get("pods", "default", "p1")
        assert pod is not None
        assert {**listed["items"][0], "apiVersion": "v1", "kind": "Pod"} == pod

    run(scenario)


def test_pages_show_one_state_though_pods_come_and_go_between_them() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        first = await client.get(f"{PODS}?limit=2")
        await client.request("DELETE", f"{PODS}/p4")
        server.api.create_from_manifest(make_pod("p3b"))
        second = await client.get(f"{PODS}?limit=2&continue={first['metadata']['continue']}")
        third = await client.get(f"{PODS}?limit=2&continue={second['metadata']['continue']}")
        assert [names(first), names(second), names(third)] == [["p1", "p2"], ["p3", "p4"], ["p5"]]
        assert (first["metadata"]["remainingItemCount"], second["metadata"]["remainingItemCount"]) == (3, 1)
        assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
        assert "continue" not in third["metadata"]

    run(scenario)


def test_a_negative_limit_is_no_limit() -> None:
    """Source: apiserver/pkg/storage/etcd3/store.go, store.GetList (1.37)."""

    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        assert names(await client.get(f"{PODS}?limit=-1")) == ["p1", "p2", "p3", "p4", "p5"]

    run(scenario)


def test_a_continue_token_of_a_compacted_state_is_expired() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        token = (await client.get(f"{PODS}?limit=2"))["metadata"]["continue"]
        server.api.create_from_manifest(make_pod("new"))
        server.store.compact()
        response = await client.request("GET", f"{PODS}?limit=2&continue={token}")
        assert (response.code, response.body["reason"]) == (410, "Expired")
        assert response.body["message"].startswith("The provided continue parameter is too old")

    run(scenario)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=n%3D2", ["p2"]),
        ("labelSelector=n+in+(1,3),n!%3D3", ["p1"]),
        ("labelSelector=n+notin+(1,2,3,4)", ["p5"]),
        ("labelSelector=!n", []),
        ("labelSelector=n%3E3", ["p4", "p5"]),
        ("fieldSelector=spec.nodeName%3Dn1", ["p2"]),
        ("fieldSelector=spec.nodeName%3D", ["p1", "p3", "p4", "p5"]),
        ("fieldSelector=status.phase!%3DPending", ["p3"]),
        ("fieldSelector=metadata.name%3Dp4", ["p4"]),
        ("fieldSelector=status.phase%3DPending,spec.nodeName%3D%3Dn1&labelSelector=n", ["p2"]),
    ],
)
def test_selectors_filter_the_list(query: str, expected: list[str]) -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        await client.request("POST", f"{PODS}/p2/binding", make_binding("n1", "p2"))
        body = {"status": {"phase": "Running"}}
        await client.request("PATCH", f"{PODS}/p3/status", body, "application/merge-patch+json")
        assert names(await client.get(f"/api/v1/pods?{query}")) == expected

    run(scenario)


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("fieldSelector=spec.color%3Dred", 400, "field label not supported: spec.color"),
        ("fieldSelector=spec.nodeName", 400, "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
        ("resourceVersion=999", 504, "Too large resource version: 999, current: 12"),
        ("resourceVersion=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "resourceVersionMatch=Exact",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden'
            " unless resourceVersion is provided",
        ),
    ],
)
def test_an_invalid_list_is_rejected(query: str, code: int, message: str) -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        response = await client.request("GET", f"{PODS}?{query}")
        assert (response.code, response.body["message"]) == (code, message)

    run(scenario)


def test_an_exact_version_lists_a_past_state_and_others_the_current_one() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("first"))
        then = server.store.resource_version
        server.api.create_from_manifest(make_pod("second"))
        exact = await client.get(f"{PODS}?resourceVersion={then}&resourceVersionMatch=Exact")
        assert (names(exact), exact["metadata"]["resourceVersion"]) == (["first"], str(then))
        assert names(await client.get(f"{PODS}?resourceVersion={then}")) == ["first", "second"]
        assert names(await client.get(f"{PODS}?resourceVersion=0&limit=1")) == ["first", "second"]
        server.store.compact()
        gone = await client.request("GET", f"{PODS}?resourceVersion={then}&resourceVersionMatch=Exact")
        assert gone.code == 410

    run(scenario)


def test_a_namespaced_list_has_only_that_namespace() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        server.api.create_from_manifest(make_pod("here"))
        server.api.create_from_manifest({**make_pod(), "metadata": {"name": "there", "namespace": "kube-system"}})
        assert names(await client.get("/api/v1/namespaces/kube-system/pods")) == ["there"]
        assert names(await client.get("/api/v1/pods")) == ["here", "there"]

    run(scenario)


def test_a_collection_can_be_deleted() -> None:
    async def scenario(server: FakeApiServer, client: Client) -> None:
        some_pods(server)
        server.api.create_from_manifest(make_node())
        await client.request("DELETE", f"{PODS}?labelSelector=n+in+(1,2)")
        assert names(await client.get(PODS)) == ["p3", "p4", "p5"]

    run(scenario)


POD = {
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "size": "3"}},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("labels", "fields", "matches"),
    [
        ("", "", True),
        ("app=web,size>2", "", True),
        ("app in (db, web),!old", "", True),
        ("app notin (web)", "", False),
        ("app!=web", "", False),
        ("size", "spec.nodeName=n1,status.phase!=Failed", True),
        ("", "spec.nodeName==n2", False),
        ("", "metadata.namespace=shop,spec.hostNetwork=false", True),
    ],
)
def test_an_object_matches_the_selectors(labels: str, fields: str, matches: bool) -> None:
    assert parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "", labels, fields).matches(POD) is matches


def test_a_namespace_restricts_the_selection() -> None:
    assert parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "shop", "", "").matches(POD)
    assert not parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "other", "", "").matches(POD)
    assert parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "shop", "", "").selects_all
    assert not parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "shop", "app", "").selects_all


@pytest.mark.parametrize(
    ("labels", "fields", "message"),
    [
        ("a b c", "", "couldn't parse the selector string"),
        ("", "spec.nodeName", "can't understand 'spec.nodeName'"),
        ("", "spec.color=red", "field label not supported: spec.color"),
    ],
)
def test_an_invalid_selector_is_rejected(labels: str, fields: str, message: str) -> None:
    with pytest.raises(StatusError, match=message):
        parse_selectors(RESOURCES_BY_KIND["v1", "Pod"], "", labels, fields)


def test_fields_of_new_events_are_those_of_the_stored_version() -> None:
    events = RESOURCES_BY_KIND["events.k8s.io/v1", "Event"]
    event = {"metadata": {"name": "e"}, "involvedObject": {"name": "web"}, "source": {"component": "sched"}}
    assert parse_selectors(events, "", "", "regarding.name=web").matches(event)
    assert get_field_value(event, "source") == "sched"
