"""The page `/explain` of `extender schedule` and `extender serve`."""

import json
from typing import Any

import pytest
import yaml

from extender.app.explain_page import explain_pod_of_service, render_explain_page
from extender.app.options import ServeOptions
from extender.app.serve_backend import make_recorded_backend
from extender.app.wiring import build_setup
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.extender_api.routes import ExtenderService
from extender.serving.serving_options import ServingOptions
from tests.build import make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group


def make_cache() -> Cache:
    """Return one node, a bound pod, an assumed pod, two pending pods, and a pod for another scheduler."""
    cache = Cache()
    cache.add_or_update_node(make_node("n1"))
    cache.add_or_update_pod(make_pod("placed", node="n1"))
    cache.add_or_update_pod(make_pod("assumed"))
    cache.assume(make_pod("assumed"), "n1")
    cache.add_or_update_pod(make_pod("big", requests={"cpu": "40"}))
    cache.add_or_update_pod(make_pod("small", requests={"cpu": "1"}))
    cache.add_or_update_pod(make_pod("other", spec={"schedulerName": "another"}))
    return cache


def explain(name: str, *, as_json: bool = False) -> str | None:
    return render_explain_page(f"default/{name}", make_cache(), build_setup().profiles, as_json=as_json)


def make_service() -> ExtenderService:
    return make_recorded_backend(ServeOptions(build_setup(), make_cache(), ServingOptions())).extender_service


@pytest.mark.parametrize(
    ("pod", "expected_start"),
    [
        (
            "big",
            "Pod default/big\n  fits on none of 1 node: 1 node has too little cpu\n"
            "  0/1 nodes are available: 1 Insufficient cpu.",
        ),
        ("small", "Pod default/small\n  fits on"),
        ("placed", "Pod default/placed is on node n1\n  n1 would be taken again\n"),
    ],
)
def test_a_pod_is_explained(pod: str, expected_start: str) -> None:
    text = explain(pod)
    assert text is not None
    assert text.startswith(expected_start)
    assert "decisions" not in text


def test_the_json_explanation_has_the_filter_results_of_every_node() -> None:
    text = explain("big", as_json=True)
    assert text is not None
    values = json.loads(text)
    assert values["nodes"]["n1"]["filters"]["NodeResourcesFit"]["reasons"] == ["Insufficient cpu"]
    assert values["filterMessage"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (values["pod"], values["node"], values["decisions"]) == ("default/big", None, [])


@pytest.mark.parametrize(("pod", "assumed"), [("placed", False), ("assumed", True)])
def test_the_json_of_an_assigned_pod_has_its_node(pod: str, assumed: bool) -> None:
    text = explain(pod, as_json=True)
    assert text is not None
    values = json.loads(text)
    assert (values["pod"], values["node"], values["assumed"]) == (f"default/{pod}", "n1", assumed)
    assert values["decisions"] == []


def test_an_assigned_pod_is_explained_like_by_the_command() -> None:
    """The answer has the rank of its node, and all plugins on all nodes, as if the pod were pending."""
    text = explain("placed", as_json=True)
    assert text is not None
    values = json.loads(text)
    assert values["assigned"]["node"] == "n1"
    assert values["feasible"] == ["n1"]
    assert values["nodes"]["n1"] == {"filters": {}, "firstFailure": None}


def test_an_assigned_pod_of_another_scheduler_has_only_its_node() -> None:
    cache = make_cache()
    cache.add_or_update_pod(make_pod("elsewhere", node="n1", spec={"schedulerName": "another"}))
    page = render_explain_page("default/elsewhere", cache, build_setup().profiles, as_json=False)
    assert page == "Pod default/elsewhere\n  is on node n1\n"


def test_an_unknown_pod_has_no_page() -> None:
    assert explain("nope") is None
    assert explain_pod_of_service(make_service(), "default", "nope", as_json=True) is None


def test_a_pod_of_another_scheduler_is_explained_only_with_a_default_profile() -> None:
    assert explain("other") is None
    page = explain_pod_of_service(make_service(), "default", "other", as_json=False)
    assert page is not None
    assert page.startswith("Pod default/other\n  fits on")


@pytest.mark.parametrize(
    ("pod", "expected_start"),
    [
        ("placed", "Pod default/placed is on node n1\n"),
        ("gone", "Pod default/gone\ndecisions:\n- time: "),
    ],
)
def test_the_page_of_serve_has_the_verb_results_after_the_explanation(pod: str, expected_start: str) -> None:
    service = make_service()
    service.verbs.decision_log.add_failure(make_pod(pod), "filter", "a plugin failed")
    text = explain_pod_of_service(service, "default", pod, as_json=False)
    json_text = explain_pod_of_service(service, "default", pod, as_json=True)
    assert text is not None
    assert json_text is not None
    assert text.startswith(expected_start)
    expected: Any = {"verb": "filter", "error": "a plugin failed"}
    for decisions in (
        yaml.safe_load(text[text.index("decisions:") :])["decisions"],
        json.loads(json_text)["decisions"],
    ):
        (decision,) = decisions
        assert {key: value for key, value in decision.items() if key != "time"} == expected


def test_a_member_of_a_gang_is_explained_with_its_gang() -> None:
    """The gang of two does not fit, so its member goes nowhere.

    Source: pkg/scheduler/schedule_one.go, Scheduler.ScheduleOne; pkg/scheduler/schedule_one_podgroup.go,
    Scheduler.podGroupInfoForPod, Scheduler.frameworkForPodGroup, Scheduler.podGroupSchedulingDefaultAlgorithm (1.36).
    """
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True}, RELEASE_1_36)
    profiles = build_setup(gates=gates).profiles
    cache = Cache()
    cache.add_or_update_node(make_node("n1", allocatable={"cpu": "1", "pods": "9"}))
    cache.add_or_update_object(make_pod_group(min_count=2))
    for name in "ab":
        cache.add_or_update_pod(make_group_member(name, requests={"cpu": "1"}))
    text, json_text = (render_explain_page("default/a", cache, profiles, as_json=as_json) for as_json in (False, True))
    assert text is not None
    assert json_text is not None
    assert "a member of pod group default/ring, scheduled together with 1 other pod\n    the pod is not placed" in text
    group = json.loads(json_text)["podGroup"]
    assert (group["name"], group["members"], group["scheduled"], group["node"]) == ("default/ring", 2, False, None)
