"""Label and field selectors of queries."""

import pytest

from extender.fake_apiserver.endpoints.query_selectors import get_field_value, parse_selectors
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.resources import PODS, RESOURCES_BY_KIND

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
    assert parse_selectors(PODS, "", labels, fields).matches(POD) is matches


def test_a_namespace_restricts_the_selection() -> None:
    assert parse_selectors(PODS, "shop", "", "").matches(POD)
    assert not parse_selectors(PODS, "other", "", "").matches(POD)
    assert parse_selectors(PODS, "shop", "", "").selects_all
    assert not parse_selectors(PODS, "shop", "app", "").selects_all


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
        parse_selectors(PODS, "", labels, fields)


def test_fields_of_new_events_are_those_of_the_stored_version() -> None:
    events = RESOURCES_BY_KIND["events.k8s.io/v1", "Event"]
    event = {"metadata": {"name": "e"}, "involvedObject": {"name": "web"}, "source": {"component": "sched"}}
    assert parse_selectors(events, "", "", "regarding.name=web").matches(event)
    assert get_field_value(event, "source") == "sched"
