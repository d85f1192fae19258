"""The scores of NodeResourcesBalancedAllocation, and its options.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit;
pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go, balancedResourceScorer, balancedResourceScore,
BalancedAllocation.PreScore; pkg/scheduler/apis/config/v1/defaults.go,
SetDefaults_NodeResourcesBalancedAllocationArgs; pkg/scheduler/apis/config/validation/validation_pluginargs.go,
ValidateNodeResourcesBalancedAllocationArgs (1.36).
"""

from typing import Any

import msgspec
import numpy as np
import pytest

from extender.api.kinds.pod import Pod
from extender.config.feature_gates import FeatureGates
from extender.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from tests.unit.plugins.builders import GPU, build_plugin, get_option_errors, make_node, make_pod, make_snapshot

POD = {"cpu": "3", "memory": "5000"}
NODE = {"cpu": "4", "memory": "10000"}
THREE = {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "ephemeral-storage"}]}
WITH_GPU = {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": GPU}]}


def scores(plugin: Any, pod: Pod, snapshot: Any, rows: list[int] | None = None) -> list[int] | None:
    pod_info, view = snapshot.make_pod_info(pod), snapshot.view(None if rows is None else np.array(rows))
    result = plugin.pre_score(pod_info, view)
    if result.skip:
        return None
    raw_scores = plugin.score(pod_info, view, result.state)
    assert raw_scores.dtype == np.int64
    return raw_scores.tolist()


# options, allocatable of the node, requested on it, requests of the pod, score
SCORES: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, str], dict[str, str], int]] = {
    # fractions 0.75 and 0.5 deviate by 0.125: 87 with the pod, 100 without, 50 + (50 - 13) / 2
    "a pod that requests more of one resource unbalances an empty node": ({}, NODE, {}, POD, 68),
    "a pod that requests equal fractions changes nothing": ({}, {"cpu": "6", "memory": "10000"}, {}, POD, 75),
    # fractions 0.5 and 0 deviate by 0.25 without the pod: 75, and 100 with it
    "a pod may balance a node": ({}, {"cpu": "6", "memory": "10000"}, {"cpu": "3"}, {"memory": "5000"}, 87),
    "fractions are at most 1": ({}, NODE, {"cpu": "5", "memory": "10000"}, POD, 75),
    # the fraction with the pod is -2**63 and the balance the least int64: (50 - 2**63 - 50) / 2 + 50
    "an overflow of the requests": (
        {},
        {"cpu": "4", "memory": "1"},
        {"memory": "9223372036854775807"},
        {"cpu": "3", "memory": "1"},
        -4611686018427387854,
    ),
    "requests count without defaults": ({}, NODE, {"memory": "0"}, {"cpu": "4"}, 50),
    # fractions 0.75, 0.5 and 0.25: the deviation is the root of 1/24, 79 with the pod
    "three resources use the standard deviation": (
        THREE,
        {**NODE, "ephemeral_storage": "100"},
        {},
        {**POD, "ephemeral-storage": "25"},
        64,
    ),
    "of three resources only the two that the node has count": (
        THREE,
        NODE,
        {},
        {**POD, "ephemeral-storage": "25"},
        68,
    ),
    "one resource is always balanced": (THREE, {"cpu": "4"}, {"cpu": "1"}, POD, 75),
    "a node without any of the resources is balanced": (THREE, {}, {}, POD, 75),
    "a scalar that the pod does not request does not count": (
        WITH_GPU,
        {**NODE, "gpu": "4"},
        {GPU: "4"},
        POD,
        68,
    ),
    # fractions 0.75, 0.5 and 1: mean 0.75, the root of 1/24; without the pod 0, 0 and 0.75: the root of 1/8, 64
    "a scalar that the pod requests counts": (WITH_GPU, {**NODE, "gpu": "4"}, {GPU: "3"}, {**POD, GPU: "1"}, 82),
}


@pytest.mark.parametrize(("args", "allocatable", "requested", "requests", "expected"), SCORES.values(), ids=SCORES)
def test_scores(
    args: dict[str, Any],
    allocatable: dict[str, str],
    requested: dict[str, str],
    requests: dict[str, str],
    expected: int,
) -> None:
    snapshot = make_snapshot(make_node("n", **allocatable), requested={"n": requested} if requested else None)
    assert scores(build_plugin(NodeResourcesBalancedAllocation, args), make_pod(requests), snapshot) == [expected]


def test_nodes_with_different_resources_are_scored_in_one_call() -> None:
    nodes = (
        make_node("two", **NODE),
        make_node("none"),
        make_node("three", **NODE, ephemeral_storage="100"),
        make_node("one", cpu="4"),
        make_node("even", cpu="6", memory="10000"),
    )
    snapshot = make_snapshot(*nodes)
    plugin = build_plugin(NodeResourcesBalancedAllocation, THREE)
    pod = make_pod({**POD, "ephemeral-storage": "25"})
    assert scores(plugin, pod, snapshot) == [68, 75, 64, 75, 75]
    assert scores(plugin, pod, snapshot, rows=[2]) == [64]
    assert scores(plugin, pod, snapshot, rows=[3, 2, 0]) == [75, 64, 68]


SKIPPED: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = {
    "a pod without requests": ({}, {}, True),
    "a pod that requests zero": ({}, {"cpu": "0"}, True),
    "a pod that requests only another resource": ({}, {GPU: "1"}, True),
    "not a pod that requests a configured resource": (WITH_GPU, {GPU: "1"}, False),
}


@pytest.mark.parametrize(("args", "requests", "skipped"), SKIPPED.values(), ids=SKIPPED)
def test_pods_that_request_none_of_the_resources_are_skipped(
    args: dict[str, Any], requests: dict[str, str], skipped: bool
) -> None:
    snapshot = make_snapshot(make_node("n", **NODE))
    assert (
        scores(build_plugin(NodeResourcesBalancedAllocation, args), make_pod(requests), snapshot) is None
    ) is skipped


def test_pod_level_requests_count_with_their_gate_on() -> None:
    snapshot = make_snapshot(make_node("n", **NODE))
    pod = make_pod(resources={"requests": POD})
    assert scores(build_plugin(NodeResourcesBalancedAllocation), pod, snapshot) == [68]
    assert (
        scores(build_plugin(NodeResourcesBalancedAllocation, gates={"PodLevelResources": False}), pod, snapshot) is None
    )


def test_actual_resources_count_with_their_gate_on() -> None:
    snapshot = make_snapshot(make_node("n", **NODE))
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    pod = make_pod({"cpu": "2", "memory": "5000"}, status=status)
    assert scores(build_plugin(NodeResourcesBalancedAllocation), pod, snapshot) == [68]
    assert scores(
        build_plugin(NodeResourcesBalancedAllocation, gates={"InPlacePodVerticalScaling": False}), pod, snapshot
    ) == [75]


def test_scores_are_cached_by_requests() -> None:
    make_pod_info = make_snapshot(make_node("n")).make_pod_info
    plugin = build_plugin(NodeResourcesBalancedAllocation, WITH_GPU)
    assert plugin.score_cache_key(make_pod_info(make_pod({**POD, "ephemeral-storage": "5"}))) == (3000, 5000, 0)
    assert plugin.score_cache_key(make_pod_info(make_pod({**POD, GPU: "1"}))) is None  # devices may back it
    plugin_without_dra = build_plugin(NodeResourcesBalancedAllocation, WITH_GPU, {"DRAExtendedResource": False})
    assert plugin_without_dra.score_cache_key(make_pod_info(make_pod({**POD, GPU: "1"}))) == (3000, 5000, 1)


ERRORS: dict[str, tuple[Any, list[str]]] = {
    "a weight is 1": (
        [{"name": "cpu", "weight": 2}, {"name": "memory"}],
        ["args.resources[0].weight: Invalid value: 2: must be 1"],
    ),
    "a resource is listed once": (
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


@pytest.mark.parametrize(("resources", "expected"), ERRORS.values(), ids=ERRORS)
def test_option_errors_have_upstreams_texts(resources: Any, expected: list[str]) -> None:
    assert get_option_errors(NodeResourcesBalancedAllocation, {"resources": resources}) == expected


DEFAULTS: dict[str, tuple[dict[str, Any], list[tuple[str, int]]]] = {
    "nothing written": ({}, [("cpu", 1), ("memory", 1)]),
    "an empty list": ({"resources": []}, [("cpu", 1), ("memory", 1)]),
    "a weight of 0": ({"resources": [{"name": "memory", "weight": 0}]}, [("memory", 1)]),
    "a resource that is null": ({"resources": [None]}, [("", 1)]),
}


@pytest.mark.parametrize(("args", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_defaults(args: dict[str, Any], expected: list[tuple[str, int]]) -> None:
    raw = NodeResourcesBalancedAllocationArgs.apply_defaults(args, FeatureGates())
    options = msgspec.convert(raw, NodeResourcesBalancedAllocationArgs)
    assert [(spec.name, spec.weight) for spec in options.resources] == expected


@pytest.mark.parametrize(
    ("requests", "expected"), [({"cpu": "1"}, 68), ({}, 0)], ids=["requests cpu", "requests nothing"]
)
def test_a_pod_that_pre_score_would_skip_scores_0_if_it_is_disabled(requests: dict[str, str], expected: int) -> None:
    snapshot = make_snapshot(make_node("n", cpu="4", memory="10000"))
    plugin = build_plugin(NodeResourcesBalancedAllocation)
    assert plugin.score(snapshot.make_pod_info(make_pod(requests)), snapshot.view(), None).tolist() == [expected]
