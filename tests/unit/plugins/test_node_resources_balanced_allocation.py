"""What NodeResourcesBalancedAllocation scores, and its options. Source: B041, B046 to B049, G040."""

from typing import Any

import msgspec
import numpy as np
import pytest

from extender.config.gates import FeatureGates
from extender.objects.pod import Pod
from extender.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from tests.unit.plugins.resource_worlds import GPU, a_cluster, a_node, a_pod, built, faults_of

POD = {"cpu": "3", "memory": "5000"}
NODE = {"cpu": "4", "memory": "10000"}
THREE = {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "ephemeral-storage"}]}
WITH_GPU = {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": GPU}]}


def scores(plugin: Any, pod: Pod, cluster: Any, rows: list[int] | None = None) -> list[int] | None:
    query, view = cluster.query(pod), cluster.view(None if rows is None else np.array(rows))
    answer = plugin.pre_score(query, view)
    if answer.skip:
        return None
    found = plugin.score(query, view, answer.notes)
    assert found.dtype == np.int64
    return found.tolist()


# options, what the node offers, what is taken of it, what the pod asks for, score
SCORES: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, str], dict[str, str], int]] = {
    # shares 0.75 and 0.5 deviate by 0.125: 87 with the pod, 100 without, 50 + (50 - 13) / 2
    "a pod that takes more of one resource unbalances an empty node": ({}, NODE, {}, POD, 68),
    "a pod that takes equal shares changes nothing": ({}, {"cpu": "6", "memory": "10000"}, {}, POD, 75),
    # shares 0.5 and 0 deviate by 0.25 without the pod: 75, and 100 with it
    "a pod may balance a node": ({}, {"cpu": "6", "memory": "10000"}, {"cpu": "3"}, {"memory": "5000"}, 87),
    "shares are 1 at most": ({}, NODE, {"cpu": "5", "memory": "10000"}, POD, 75),
    "requests are taken as they are, without defaults": ({}, NODE, {"memory": "0"}, {"cpu": "4"}, 50),
    # shares 0.75, 0.5 and 0.25: the deviation is the root of 1/24, 79 with the pod
    "three resources take the standard deviation": (
        THREE,
        {**NODE, "ephemeral_storage": "100"},
        {},
        {**POD, "ephemeral-storage": "25"},
        64,
    ),
    "of three resources the two count that the node has": (THREE, NODE, {}, {**POD, "ephemeral-storage": "25"}, 68),
    "one resource is always balanced": (THREE, {"cpu": "4"}, {"cpu": "1"}, POD, 75),
    "a node without any of the resources is balanced": (THREE, {}, {}, POD, 75),
    "a scalar that the pod does not ask for does not count": (
        WITH_GPU,
        {**NODE, "gpu": "4"},
        {GPU: "4"},
        POD,
        68,
    ),
    # shares 0.75, 0.5 and 1: mean 0.75, the root of 1/24; without the pod 0, 0 and 0.75: the root of 1/8, 64
    "a scalar that the pod asks for counts": (WITH_GPU, {**NODE, "gpu": "4"}, {GPU: "3"}, {**POD, GPU: "1"}, 82),
}


@pytest.mark.parametrize(("args", "offered", "taken", "requests", "expected"), SCORES.values(), ids=SCORES)
def test_scores(
    args: dict[str, Any], offered: dict[str, str], taken: dict[str, str], requests: dict[str, str], expected: int
) -> None:
    cluster = a_cluster(a_node("n", **offered), taken={"n": taken} if taken else None)
    assert scores(built(NodeResourcesBalancedAllocation, args), a_pod(requests), cluster) == [expected]


def test_nodes_that_differ_in_what_they_have_are_scored_in_one_call() -> None:
    nodes = (
        a_node("two", **NODE),
        a_node("none"),
        a_node("three", **NODE, ephemeral_storage="100"),
        a_node("one", cpu="4"),
        a_node("even", cpu="6", memory="10000"),
    )
    cluster = a_cluster(*nodes)
    plugin = built(NodeResourcesBalancedAllocation, THREE)
    pod = a_pod({**POD, "ephemeral-storage": "25"})
    assert scores(plugin, pod, cluster) == [68, 75, 64, 75, 75]
    assert scores(plugin, pod, cluster, rows=[2]) == [64]
    assert scores(plugin, pod, cluster, rows=[3, 2, 0]) == [75, 64, 68]


SKIPPED: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = {
    "a pod that asks for nothing": ({}, {}, True),
    "a pod that asks for zero": ({}, {"cpu": "0"}, True),
    "a pod that asks for another resource only": ({}, {GPU: "1"}, True),
    "not a pod that asks for a configured one": (WITH_GPU, {GPU: "1"}, False),
}


@pytest.mark.parametrize(("args", "requests", "skipped"), SKIPPED.values(), ids=SKIPPED)
def test_pods_that_ask_for_none_of_the_resources_are_not_scored(
    args: dict[str, Any], requests: dict[str, str], skipped: bool
) -> None:
    cluster = a_cluster(a_node("n", **NODE))
    assert (scores(built(NodeResourcesBalancedAllocation, args), a_pod(requests), cluster) is None) is skipped


def test_requests_of_the_pod_as_a_whole_count_while_their_gate_is_on() -> None:
    cluster = a_cluster(a_node("n", **NODE))
    pod = a_pod(resources={"requests": POD})
    assert scores(built(NodeResourcesBalancedAllocation), pod, cluster) == [68]
    assert scores(built(NodeResourcesBalancedAllocation, gates={"PodLevelResources": False}), pod, cluster) is None


def test_resources_in_effect_count_while_their_gate_is_on() -> None:
    cluster = a_cluster(a_node("n", **NODE))
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    pod = a_pod({"cpu": "2", "memory": "5000"}, status=status)
    assert scores(built(NodeResourcesBalancedAllocation), pod, cluster) == [68]
    assert scores(built(NodeResourcesBalancedAllocation, gates={"InPlacePodVerticalScaling": False}), pod, cluster) == [
        75
    ]


def test_scores_are_kept_by_the_requests() -> None:
    query = a_cluster(a_node("n")).query
    plugin = built(NodeResourcesBalancedAllocation, WITH_GPU)
    assert plugin.score_key(query(a_pod({**POD, "ephemeral-storage": "5"}))) == (3000, 5000, 0)
    assert plugin.score_key(query(a_pod({**POD, GPU: "1"}))) is None  # devices may serve it
    without = built(NodeResourcesBalancedAllocation, WITH_GPU, {"DRAExtendedResource": False})
    assert without.score_key(query(a_pod({**POD, GPU: "1"}))) == (3000, 5000, 1)


FAULTS: dict[str, tuple[Any, list[str]]] = {
    "a weight is 1": (
        [{"name": "cpu", "weight": 2}, {"name": "memory"}],
        ["args.resources[0].weight: Invalid value: 2: must be 1"],
    ),
    "a resource stands there once": (
        [{"name": "cpu"}, {"name": "memory"}, {"name": "cpu"}],
        ['args.resources[2].name: Duplicate value: "cpu"'],
    ),
    "both at once": (
        [{"name": "cpu"}, {"name": "cpu", "weight": -1}],
        [
            'args.resources[1].name: Duplicate value: "cpu"',
            "args.resources[1].weight: Invalid value: -1: must be 1",
        ],
    ),
    "a resource is an object": (["cpu"], ['args.resources[0]: expected an object, got the string "cpu"']),
}


@pytest.mark.parametrize(("resources", "expected"), FAULTS.values(), ids=FAULTS)
def test_wrong_options_are_told_in_upstreams_words(resources: Any, expected: list[str]) -> None:
    assert faults_of(NodeResourcesBalancedAllocation, {"resources": resources}) == expected


DEFAULTS: dict[str, tuple[dict[str, Any], list[tuple[str, int]]]] = {
    "nothing written": ({}, [("cpu", 1), ("memory", 1)]),
    "an empty list": ({"resources": []}, [("cpu", 1), ("memory", 1)]),
    "a weight of 0": ({"resources": [{"name": "memory", "weight": 0}]}, [("memory", 1)]),
    "a resource that is null": ({"resources": [None]}, [("", 1)]),
}


@pytest.mark.parametrize(("args", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_defaults(args: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    raw = NodeResourcesBalancedAllocationArgs.defaulted(args, FeatureGates())
    options = msgspec.convert(raw, NodeResourcesBalancedAllocationArgs)
    assert [(spec.name, spec.weight) for spec in options.resources] == expected


@pytest.mark.parametrize(("requests", "expected"), [({"cpu": "1"}, 68), ({}, 0)], ids=["asks for cpu", "asks for none"])
def test_where_pre_score_is_switched_off_a_pod_it_would_skip_scores_nothing(
    requests: dict[str, str], expected: int
) -> None:
    cluster = a_cluster(a_node("n", cpu="4", memory="10000"))
    plugin = built(NodeResourcesBalancedAllocation)
    assert plugin.score(cluster.query(a_pod(requests)), cluster.view(), None).tolist() == [expected]
