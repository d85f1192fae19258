"""The scores of NodeResourcesFit for nodes and placements, and its options.

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_NodeResourcesFitArgs;
pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
resourceAllocationScorer.calculateNodeAllocatableRequest, resourceAllocationScorer.score;
pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastResourceScorer;
pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostResourceScorer;
pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
buildRequestedToCapacityRatioScorerFunction; pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit;
pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs, validateFunctionShape
(1.36).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from extender.api.kinds.pod import Pod
from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import Placement, PodGroupAssignments, PodGroupInfo
from extender.framework.status import Code
from extender.plugin_parts.scored_resources import ResourceSpec
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs, ScoringStrategy
from tests.unit.plugins.builders import GPU, build_plugin, get_option_errors, make_node, make_pod, make_snapshot

NODES = {
    "n": make_node("n", cpu="4", memory="10000"),
    "gpus": make_node("gpus", cpu="4", memory="10000", gpu="4"),
    "roomy": make_node("roomy", cpu="4", memory="1000Mi"),
    "vast": make_node("vast", cpu="4", gpu="200000000000000000"),
    "deep": make_node("deep", cpu="4", memory="90071992547409"),
}
POD = {"cpu": "3", "memory": "5000"}
CPU_GPU: list[dict[str, Any]] = [{"name": "cpu"}, {"name": GPU, "weight": 5}]


def make_strategy_args(
    strategy_type: str, resources: list[dict[str, Any]] | None = None, shape: list[tuple[int, int]] | None = None
) -> Any:
    body: dict[str, Any] = {"type": strategy_type, "resources": resources or []}
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        body["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": body}


LEAST, MOST = make_strategy_args("LeastAllocated"), make_strategy_args("MostAllocated")
RISING = make_strategy_args("RequestedToCapacityRatio", shape=[(0, 0), (100, 10)])

# name: options, node, requested on it, requests of the pod, score
SCORES: dict[str, tuple[Any, str, dict[str, str], dict[str, str], int]] = {
    "least: the mean of 25 and 50 is truncated": (LEAST, "n", {}, POD, 37),
    "least: an overcommitted resource scores 0": (LEAST, "n", {"cpu": "1500m", "memory": "0"}, POD, 25),
    "least: a sum that overflows int64 is not above the capacity": (
        LEAST,
        "n",
        {"cpu": "0", "memory": "9223372036854775807"},
        POD,
        37,
    ),
    "least: containers without requests count as 100m and 200Mi": (LEAST, "roomy", {}, {}, 88),
    "least: containers of pods on the node too": (LEAST, "roomy", {"cpu": "0"}, {"cpu": "1", "memory": "0"}, 77),
    "most: a share just below 100 percent is truncated, also at the limit of float precision": (
        make_strategy_args("MostAllocated", [{"name": "memory"}]),
        "deep",
        {},
        {"memory": "90071992547408"},
        99,
    ),
    "least: weights": (
        make_strategy_args("LeastAllocated", [{"name": "cpu", "weight": 3}, {"name": "memory"}]),
        "n",
        {},
        POD,
        31,
    ),
    "least: a resource that the node lacks does not count": (
        make_strategy_args("LeastAllocated", CPU_GPU),
        "n",
        {},
        {**POD, GPU: "1"},
        25,
    ),
    "least: a resource that the node has counts": (
        make_strategy_args("LeastAllocated", CPU_GPU),
        "gpus",
        {},
        {**POD, GPU: "1"},
        66,
    ),
    "least: a scalar that the pod does not request does not count": (
        make_strategy_args("LeastAllocated", CPU_GPU),
        "gpus",
        {},
        POD,
        25,
    ),
    "least: no counted resource scores 0": (make_strategy_args("LeastAllocated", [{"name": GPU}]), "gpus", {}, POD, 0),
    "least: an unknown resource does not count": (
        make_strategy_args("LeastAllocated", [{"name": "pods"}]),
        "n",
        {},
        POD,
        0,
    ),
    # 199999999999999999 * 100 wraps around to 1553255926290448284, and 7 times the divisor fits into that
    "least: products wrap around as in Go": (
        make_strategy_args("LeastAllocated", [{"name": GPU}]),
        "vast",
        {},
        {GPU: "1"},
        7,
    ),
    # 10**19 wraps around to -8446744073709551616, -42.2 times the divisor
    "least: negative quotients are truncated towards zero": (
        make_strategy_args("LeastAllocated", [{"name": GPU}]),
        "vast",
        {},
        {GPU: "100000000000000000"},
        -42,
    ),
    "ratio: a utilization below 0 scores like 0": (
        make_strategy_args("RequestedToCapacityRatio", [{"name": GPU}], [(0, 3), (100, 10)]),
        "vast",
        {},
        {GPU: "100000000000000000"},
        30,
    ),
    "most: the mean of 75 and 50 is truncated": (MOST, "n", {}, POD, 62),
    "most: an overcommitted resource scores 100": (MOST, "n", {"cpu": "1500m", "memory": "0"}, POD, 75),
    "most: a resource that the node lacks does not count": (
        make_strategy_args("MostAllocated", CPU_GPU),
        "n",
        {},
        {**POD, GPU: "1"},
        75,
    ),
    "ratio: the mean of 75 and 50 is rounded": (RISING, "n", {}, POD, 63),
    "ratio: a resource that scores 0 does not count": (
        make_strategy_args("RequestedToCapacityRatio", shape=[(0, 10), (75, 0)]),
        "n",
        {},
        POD,
        34,  # cpu 0, memory 100 - 1000 * 50 / 750 = 100 - 66
    ),
    "ratio: overcommitted is 100 percent": (RISING, "n", {"cpu": "1500m", "memory": "0"}, POD, 75),
    "ratio: all resources at 0 score 0": (
        make_strategy_args("RequestedToCapacityRatio", shape=[(0, 0), (80, 0), (100, 10)]),
        "n",
        {},
        POD,
        0,
    ),
    "ratio: weights": (
        make_strategy_args(
            "RequestedToCapacityRatio", [{"name": "cpu", "weight": 3}, {"name": "memory"}], [(0, 0), (100, 10)]
        ),
        "n",
        {},
        POD,
        69,  # 275 / 4 = 68.75
    ),
}


@pytest.mark.parametrize(("args", "node", "requested", "requests", "expected"), SCORES.values(), ids=SCORES)
def test_scores(args: Any, node: str, requested: dict[str, str], requests: dict[str, str], expected: int) -> None:
    snapshot = make_snapshot(NODES[node], requested={node: requested} if requested else None)
    plugin = build_plugin(NodeResourcesFit, args)
    assert scores(plugin, make_pod(requests), snapshot) == [expected]


def scores(plugin: Any, pod: Pod, snapshot: Any, rows: list[int] | None = None) -> list[int]:
    pod_info, view = snapshot.make_pod_info(pod), snapshot.view(None if rows is None else np.array(rows))
    result = plugin.pre_score(pod_info, view)
    assert not result.skip
    assert result.status is None
    raw_scores = plugin.score(pod_info, view, result.state)
    assert raw_scores.dtype == np.int64
    return raw_scores.tolist()


@pytest.mark.parametrize(
    ("strategy_type", "expected"),
    [("LeastAllocated", [25, 66, 0]), ("MostAllocated", [75, 33, 0]), ("RequestedToCapacityRatio", [75, 33, 0])],
)
def test_each_node_is_scored_by_the_resources_it_has(strategy_type: str, expected: list[int]) -> None:
    shape = [(0, 0), (100, 10)] if strategy_type == "RequestedToCapacityRatio" else None
    plugin = build_plugin(NodeResourcesFit, make_strategy_args(strategy_type, CPU_GPU, shape))
    snapshot = make_snapshot(NODES["n"], NODES["gpus"], make_node("empty"))
    pod = make_pod({**POD, GPU: "1"})
    assert scores(plugin, pod, snapshot) == expected
    assert scores(plugin, pod, snapshot, rows=[1]) == expected[1:2]
    assert scores(plugin, pod, snapshot, rows=[2, 0]) == [expected[2], expected[0]]


def test_pod_level_requests_of_the_incoming_pod_do_not_count() -> None:
    pod = make_pod(resources={"requests": {"cpu": "3", "memory": "500Mi"}})
    assert scores(build_plugin(NodeResourcesFit), pod, make_snapshot(NODES["roomy"])) == [88]


def test_scoring_without_resources_is_an_error() -> None:
    options = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=()))
    snapshot = make_snapshot(NODES["n"])
    result = NodeResourcesFit(PluginArgs(options, FeatureGates())).pre_score(
        snapshot.make_pod_info(make_pod()), snapshot.view()
    )
    assert result.status is not None
    assert (result.status.code, result.status.reasons) == (Code.ERROR, ("resources not found",))


# -- options

_BAD_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_RATIO = "args.scoringStrategy.requestedToCapacityRatio"

ERRORS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an ignored resource is a qualified name": (
        {"ignoredResources": ["example.com/a", "-b"]},
        [f'args.ignoredResources[1]: Invalid value: "-b": {_BAD_NAME}'],
    ),
    "an ignored group has no slash": (
        {"ignoredResourceGroups": ["example.com/a"]},
        ["args.ignoredResourceGroups[0]: Invalid value: \"example.com/a\": resource group name can't contain '/'"],
    ),
    "an ignored group is a name": (
        {"ignoredResourceGroups": ["_"]},
        [f'args.ignoredResourceGroups[0]: Invalid value: "_": {_BAD_NAME}'],
    ),
    "a strategy has a known type": (
        make_strategy_args("Fullest"),
        [
            'args.scoringStrategy.type: Unsupported value: "Fullest": supported values:'
            ' "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
        ],
    ),
    "a strategy that is written has a type": (
        {"scoringStrategy": {}},
        [
            'args.scoringStrategy.type: Unsupported value: "": supported values:'
            ' "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
        ],
    ),
    "a weight is above 0": (
        make_strategy_args("MostAllocated", [{"name": "cpu", "weight": -1}]),
        [
            "args.scoringStrategy.resources[0].weight: Invalid value: -1:"
            " resource weight of cpu not in valid range (0, 100]"
        ],
    ),
    "a weight is 100 at most": (
        make_strategy_args("MostAllocated", [{"name": "cpu"}, {"name": GPU, "weight": 101}]),
        [
            "args.scoringStrategy.resources[1].weight: Invalid value: 101:"
            " resource weight of example.com/gpu not in valid range (0, 100]"
        ],
    ),
    "the ratio needs a shape": (
        make_strategy_args("RequestedToCapacityRatio"),
        [f"{_RATIO}: Required value: must be specified when type is RequestedToCapacityRatio"],
    ),
    "other strategies have no shape": (
        make_strategy_args("LeastAllocated", shape=[(0, 0)]),
        [f"{_RATIO}: Forbidden: must be nil when type is not RequestedToCapacityRatio"],
    ),
    "a shape has points": (
        make_strategy_args("RequestedToCapacityRatio", shape=[]),
        [f"{_RATIO}.shape: Required value: at least one point must be specified"],
    ),
    "utilization rises": (
        make_strategy_args("RequestedToCapacityRatio", shape=[(0, 0), (50, 1), (50, 2), (40, 3)]),
        [f"{_RATIO}.shape[2].utilization: Invalid value: 50: values must be sorted in increasing order"],
    ),
    "utilization is a percentage": (
        make_strategy_args("RequestedToCapacityRatio", shape=[(-1, 0), (101, 1)]),
        [
            f"{_RATIO}.shape[0].utilization: Invalid value: -1: not in valid range [0, 100]",
            f"{_RATIO}.shape[1].utilization: Invalid value: 101: not in valid range [0, 100]",
        ],
    ),
    "a score is at most 10": (
        make_strategy_args("RequestedToCapacityRatio", shape=[(0, -1), (100, 11)]),
        [
            f"{_RATIO}.shape[0].score: Invalid value: -1: not in valid range [0, 10]",
            f"{_RATIO}.shape[1].score: Invalid value: 11: not in valid range [0, 10]",
        ],
    ),
    "a list of resources is a list": (
        {"scoringStrategy": {"type": "LeastAllocated", "resources": "cpu"}},
        ['args.scoringStrategy.resources: expected a list, got the string "cpu"'],
    ),
    "a strategy is an object": (
        {"scoringStrategy": "LeastAllocated"},
        ['args.scoringStrategy: expected an object, got the string "LeastAllocated"'],
    ),
}


@pytest.mark.parametrize(("args", "expected"), ERRORS.values(), ids=ERRORS)
def test_option_errors_have_upstreams_texts(args: dict[str, Any], expected: list[str]) -> None:
    assert get_option_errors(NodeResourcesFit, args) == expected


CPU_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
DEFAULTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing written": ({}, {"type": "LeastAllocated", "resources": CPU_MEMORY}),
    "a strategy that is null": ({"scoringStrategy": None}, {"type": "LeastAllocated", "resources": CPU_MEMORY}),
    "a strategy without resources": (
        {"scoringStrategy": {"type": "MostAllocated"}},
        {"type": "MostAllocated", "resources": CPU_MEMORY},
    ),
    "weights of 0 and none": (
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}, {"name": GPU}]}},
        {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 1}]},
    ),
}


@pytest.mark.parametrize(("args", "expected"), DEFAULTS.values(), ids=DEFAULTS)
def test_defaults(args: dict[str, Any], expected: dict[str, Any]) -> None:
    raw = NodeResourcesFitArgs.apply_defaults(args, FeatureGates())
    rendered = msgspec.json.decode(msgspec.json.encode(msgspec.convert(raw, NodeResourcesFitArgs)))
    assert rendered == {
        "ignoredResources": [],
        "ignoredResourceGroups": [],
        "scoringStrategy": {**expected, "requestedToCapacityRatio": None},
    }


def test_empty_options_are_the_defaults() -> None:
    assert (
        msgspec.convert(NodeResourcesFitArgs.apply_defaults({}, FeatureGates()), NodeResourcesFitArgs)
        == NodeResourcesFitArgs()
    )


def test_requests_are_computed_in_score_if_pre_score_is_disabled() -> None:
    plugin, snapshot = build_plugin(NodeResourcesFit, LEAST), make_snapshot(NODES["n"])
    assert plugin.score(snapshot.make_pod_info(make_pod(POD)), snapshot.view(), None).tolist() == [37]


CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
WITH_GPU = (*CPU_AND_MEMORY, (GPU, 1))
PLACEMENT = frozenset({"n1", "n2"})


def score_placement(
    requests: Sequence[Mapping[str, str]],
    weights: Sequence[tuple[str, int]] = CPU_AND_MEMORY,
    running: Mapping[str, str] | None = None,
    node_names: frozenset[str] | None = PLACEMENT,
    gpus: Sequence[str] = ("4", "4", "4"),
) -> int:
    """Return the score of a group with *requests* in a cluster of three nodes with 5 CPUs and 5,000 bytes each."""
    nodes = [make_node(f"n{number}", cpu="5", memory="5k", gpu=count) for number, count in enumerate(gpus, 1)]
    snapshot = make_snapshot(*nodes, requested={} if running is None else {"n1": running})
    members = tuple(
        snapshot.make_pod_info(make_pod(amounts, f"member-{number}")) for number, amounts in enumerate(requests)
    )
    strategy = ScoringStrategy("LeastAllocated", tuple(ResourceSpec(name, weight) for name, weight in weights))
    plugin = NodeResourcesFit(PluginArgs(NodeResourcesFitArgs(scoring_strategy=strategy), FeatureGates()))
    assignments = PodGroupAssignments(Placement("zone", node_names), {pod.uid: "n1" for pod in members}, members)
    return plugin.score_placement(PodGroupInfo("default", "group"), snapshot, assignments)


SMALL, LARGE = {"cpu": "1", "memory": "0"}, {"cpu": "2", "memory": "2k"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(score_placement([SMALL, LARGE]), 25, id="30% of the CPU and 20% of the memory"),
        pytest.param(score_placement([SMALL, LARGE], [("cpu", 4), ("memory", 1)]), 28, id="weights"),
        pytest.param(score_placement([SMALL, LARGE], running=SMALL), 30, id="other pods on the nodes count too"),
        pytest.param(score_placement([SMALL, LARGE], node_names=None), 16, id="20% and 13% of all three nodes"),
        pytest.param(
            score_placement([SMALL, LARGE], node_names=frozenset({"n2"})), 50, id="one node, without the running pod"
        ),
        pytest.param(score_placement([SMALL, {**LARGE, GPU: "2"}], WITH_GPU), 25, id="30%, 20% and 25% of the GPUs"),
        pytest.param(
            score_placement([SMALL, LARGE], WITH_GPU, running={**SMALL, GPU: "4"}), 30, id="GPUs that are not requested"
        ),
        pytest.param(
            score_placement([SMALL, {**LARGE, GPU: "2"}], WITH_GPU, running={**SMALL, GPU: "1"}, gpus=("0", "4", "4")),
            36,
            id="GPUs in use on a node without GPUs do not count",
        ),
        pytest.param(score_placement([{"cpu": "90", "memory": "0"}]), 50, id="more than the capacity is 100%"),
    ],
)
def test_the_score_is_the_weighted_mean_of_the_requested_shares(found: int, expected: int) -> None:
    assert found == expected
