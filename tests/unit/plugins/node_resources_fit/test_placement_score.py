"""The placement score: the share of a placement's resources that is requested with the group's pods.

Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, resourceAllocationScorer.scorePlacement
(1.36).
"""

from collections.abc import Mapping, Sequence

import pytest

from extender.config.feature_gates import FeatureGates
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import Placement, PodGroupAssignments, PodGroupInfo
from extender.plugin_parts.scored_resources import ResourceSpec
from extender.plugins.node_resources_fit.plugin import NodeResourcesFit, NodeResourcesFitArgs, ScoringStrategy
from tests.build import make_cluster, make_node, make_pod, make_pod_info

GPU = "example.com/gpu"
CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
WITH_GPU = (*CPU_AND_MEMORY, (GPU, 1))
NODES = frozenset({"n1", "n2"})


def score(
    requests: Sequence[Mapping[str, str]],
    weights: Sequence[tuple[str, int]] = CPU_AND_MEMORY,
    running: Mapping[str, str] | None = None,
    node_names: frozenset[str] | None = NODES,
    gpus: Sequence[str] = ("4", "4", "4"),
) -> int:
    """Return the score of a group with *requests* in a cluster of three nodes with 5 CPUs and 5,000 bytes each."""
    nodes = [
        make_node(f"n{number}", allocatable={"cpu": "5", "memory": "5k", "pods": "9", GPU: count})
        for number, count in enumerate(gpus, 1)
    ]
    pods = [] if running is None else [make_pod("running", node="n1", requests=running)]
    cache = make_cluster(*nodes, *pods)
    members = tuple(
        make_pod_info(make_pod(f"member-{number}", requests=amounts), cache) for number, amounts in enumerate(requests)
    )
    strategy = ScoringStrategy("LeastAllocated", tuple(ResourceSpec(name, weight) for name, weight in weights))
    plugin = NodeResourcesFit(PluginArgs(NodeResourcesFitArgs(scoring_strategy=strategy), FeatureGates()))
    assignments = PodGroupAssignments(Placement("zone", node_names), {pod.uid: "n1" for pod in members}, members)
    return plugin.score_placement(PodGroupInfo("default", "group"), cache.snapshot(), assignments)


SMALL, LARGE = {"cpu": "1", "memory": "0"}, {"cpu": "2", "memory": "2k"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(score([SMALL, LARGE]), 25, id="30% of the CPU and 20% of the memory"),
        pytest.param(score([SMALL, LARGE], [("cpu", 4), ("memory", 1)]), 28, id="weights"),
        pytest.param(score([SMALL, LARGE], running=SMALL), 30, id="other pods on the nodes count too"),
        pytest.param(score([SMALL, LARGE], node_names=None), 16, id="20% and 13% of all three nodes"),
        pytest.param(score([SMALL, LARGE], node_names=frozenset({"n2"})), 50, id="one node, without the running pod"),
        pytest.param(score([SMALL, {**LARGE, GPU: "2"}], WITH_GPU), 25, id="30%, 20% and 25% of the GPUs"),
        pytest.param(
            score([SMALL, LARGE], WITH_GPU, running={**SMALL, GPU: "4"}), 30, id="GPUs that are not requested"
        ),
        pytest.param(
            score([SMALL, {**LARGE, GPU: "2"}], WITH_GPU, running={**SMALL, GPU: "1"}, gpus=("0", "4", "4")),
            36,
            id="GPUs in use on a node without GPUs do not count",
        ),
        pytest.param(score([{"cpu": "90", "memory": "0"}]), 50, id="more than the capacity is 100%"),
    ],
)
def test_the_score_is_the_weighted_mean_of_the_requested_shares(found: int, expected: int) -> None:
    assert found == expected
