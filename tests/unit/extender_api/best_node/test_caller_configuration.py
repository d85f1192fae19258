"""The check of kube-scheduler's configuration beside an extender that answers one node."""

from typing import Any

import pytest

from extender.app import wiring
from extender.config.errors import ConfigError
from extender.extender_api.best_node.caller_configuration import describe_best_node_effects

OURS = {"urlPrefix": "http://127.0.0.1:8888", "filterVerb": "filter", "nodeCacheCapable": True}
OTHER = {"urlPrefix": "http://127.0.0.1:9999"}
GPU = {"managedResources": [{"name": "example.com/gpu"}]}
SCORES = {"default-scheduler": ("NodeResourcesFit", "ImageLocality")}
FIT_LINE = (
    "kube-scheduler calls no Score plugin for pods of default-scheduler: NodeResourcesFit, ImageLocality have no effect"
)


def describe(*extenders: dict[str, Any], percentage: int = 100, **more: Any) -> list[str]:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": percentage,
        "extenders": list(extenders),
    }
    configuration = wiring.build_setup_from_document(document, "test").configuration
    return describe_best_node_effects(configuration, SCORES, **more)


def errors(*extenders: dict[str, Any], **more: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        describe(*extenders, **more)
    return [str(error) for error in caught.value.errors]


def test_the_score_plugins_and_the_verb_prioritize_are_not_called() -> None:
    assert describe(OURS) == [FIT_LINE]
    assert describe({**OURS, "prioritizeVerb": "prioritize", "weight": 1}) == [
        FIT_LINE,
        "kube-scheduler does not call prioritizeVerb of http://127.0.0.1:8888",
    ]


def test_a_part_of_the_nodes_and_whole_nodes_are_mentioned() -> None:
    assert describe({**OURS, "nodeCacheCapable": False}, percentage=10)[1:] == [
        "kube-scheduler sends only a part of the nodes of a large cluster, and the best of them is chosen; "
        "percentageOfNodesToScore: 100 sends all nodes that fit",
        "kube-scheduler sends whole nodes, which is slow; nodeCacheCapable: true sends names",
    ]


@pytest.mark.parametrize("ours_first", [True, False])
def test_another_extender_that_scores_nodes_is_a_contradiction(ours_first: bool) -> None:
    scoring = {**OTHER, "prioritizeVerb": "prioritize", "weight": 1}
    extenders = (OURS, scoring) if ours_first else (scoring, OURS)
    assert errors(*extenders) == [
        f"extenders[{int(ours_first)}].prioritizeVerb: is never called: http://127.0.0.1:8888 leaves one node; "
        "remove it, or set --filter-answer=feasible"
    ]


def test_another_extender_that_filters_nodes_must_come_before() -> None:
    filtering = {**OTHER, "filterVerb": "filter"}
    assert describe(filtering, OURS, url_prefix="http://127.0.0.1:8888/") == [FIT_LINE]
    assert errors(OURS, filtering, port=8888) == [
        "extenders[1].filterVerb: can only reject the one node that http://127.0.0.1:8888 leaves; "
        "want it before extenders[0]"
    ]


def test_with_managed_resources_the_other_extenders_decide_about_other_pods() -> None:
    scoring = {**OTHER, "prioritizeVerb": "prioritize", "weight": 1}
    assert describe({**OURS, **GPU}, scoring) == [
        "kube-scheduler calls no Score plugin for pods of default-scheduler that request example.com/gpu: "
        "NodeResourcesFit, ImageLocality have no effect",
        "kube-scheduler does not call prioritizeVerb of http://127.0.0.1:9999 for pods that request example.com/gpu",
    ]


def test_the_extender_must_be_known() -> None:
    filtering = {**OTHER, "filterVerb": "filter"}
    assert errors({**OTHER, "preemptVerb": "preempt"}) == ["extenders: none has filterVerb; want one that calls filter"]
    assert errors(OURS, filtering) == [
        "extenders: several have filterVerb (http://127.0.0.1:8888, http://127.0.0.1:9999); want the urlPrefix of one"
    ]
    assert errors(OURS, url_prefix="http://127.0.0.1:1") == [
        "extenders: none has filterVerb and the urlPrefix http://127.0.0.1:1"
    ]
