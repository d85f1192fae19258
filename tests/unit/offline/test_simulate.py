"""Simulations of small queues: who gets where, who does not, and how full the nodes get."""

from pathlib import Path
from typing import Any

from extender import wiring
from extender.offline.capture import load_state, read_capture
from extender.offline.simulate import Placement, Simulation, simulate
from extender.offline.simulation_text import text, values
from extender.offline.usage import Share

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: 1, memory: 4Gi, example.com/gpu: 2, pods: 10}}
---
"""


def pod(name: str, cpu: str, spec: str = "", status: str = "") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nstatus: {{{status}}}\n"
        f"spec: {{{spec}containers: [{{name: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n---\n"
    )


def simulated(tmp_path: Path, cluster: str, seed: int = 0, progress: Any = None) -> Simulation:
    path = tmp_path / "c.yaml"
    path.write_text(cluster)
    state = load_state(read_capture([str(path)]))
    return simulate(state, wiring.scheduling().profiles, wiring.engine(), seed=seed, progress=progress)


def test_what_is_placed_counts_for_those_that_follow(tmp_path: Path) -> None:
    found = simulated(tmp_path, NODES + pod("a", "1500m") + pod("b", "800m") + pod("c", "800m"))
    *placed, unplaced = found.placements
    assert placed == [Placement("default/a", "n1"), Placement("default/b", "n2")]
    assert (unplaced.pod, unplaced.node, unplaced.reason) == ("default/c", "", "Insufficient cpu")
    assert unplaced.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_the_queue_goes_by_priority_then_by_file_order(tmp_path: Path) -> None:
    cluster = NODES + pod("late", "1m") + pod("high", "1m", "priority: 9, ") + pod("later", "1m")
    assert [each.pod for each in simulated(tmp_path, cluster).placements] == [
        "default/high",
        "default/late",
        "default/later",
    ]


def test_pods_that_are_held_back_are_told_apart(tmp_path: Path) -> None:
    found = simulated(tmp_path, NODES + pod("a", "1m", "schedulingGates: [{name: x}], "))
    assert found.placements == (
        Placement(
            "default/a",
            reason="held back by SchedulingGates: waiting for scheduling gates: [x]",
            message="waiting for scheduling gates: [x]",
        ),
    )


def test_a_pod_of_another_scheduler_is_left_alone(tmp_path: Path) -> None:
    assert simulated(tmp_path, NODES + pod("a", "1m", "schedulerName: mine, ")).placements == ()


def test_a_cluster_without_nodes_places_nothing(tmp_path: Path) -> None:
    found = simulated(tmp_path, pod("a", "1m"))
    assert found.placements == (
        Placement(
            "default/a",
            reason="no nodes available to schedule pods",
            message="no nodes available to schedule pods",
        ),
    )
    assert text(found, 0) == (
        "1 pod waiting, 0 placed, 1 not placed (seed 0)\n\nNot placed\n"
        "  1  no nodes available to schedule pods\n     default/a\n"
    )


def test_a_pod_whose_only_nodes_are_gone_is_not_placed(tmp_path: Path) -> None:
    affinity = (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]}}}, "
    )
    (placement,) = simulated(tmp_path, NODES + pod("a", "1m", affinity)).placements
    assert placement.reason == "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def test_a_nominated_pod_keeps_its_room_from_pods_of_no_higher_priority_until_it_is_placed(tmp_path: Path) -> None:
    cluster = NODES + pod("first", "1500m") + pod("nominated", "1", status="nominatedNodeName: n1")
    assert [each.node for each in simulated(tmp_path, cluster).placements] == ["", "n1"]


def test_the_same_seed_gives_the_same_placements_and_some_other_seed_gives_others(tmp_path: Path) -> None:
    twins = "".join(NODES.replace("n1", f"a{i}").replace("n2", f"b{i}") for i in range(4))
    cluster = twins + "".join(pod(f"p{i}", "10m") for i in range(6))
    runs = [simulated(tmp_path, cluster, seed).placements for seed in (1, 1, 2, 3, 4)]
    assert runs[0] == runs[1]
    assert len({tuple(each.node for each in run) for run in runs}) > 1


def test_progress_is_told_after_each_pod(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    simulated(tmp_path, NODES + pod("a", "1m") + pod("b", "1m"), progress=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]


def test_usage_is_what_pods_request_of_what_nodes_offer(tmp_path: Path) -> None:
    placed = pod("old", "500m", "nodeName: n2, ")
    found = simulated(tmp_path, NODES + placed + pod("a", "1500m"))
    assert found.before.total == {
        "pods": Share(1, 20),
        "cpu": Share(500, 3000),
        "memory": Share(0, 8 << 30),
        "example.com/gpu": Share(0, 2),
    }
    assert found.after.total["cpu"] == Share(2000, 3000)
    assert [(node.name, node.fullness) for node in found.after.fullest(1)] == [("n1", 0.75)]
    assert [(node.name, node.fullness) for node in found.after.emptiest(1)] == [("n2", 0.5)]


CLUSTER = NODES + pod("a", "1500m") + "".join(pod(f"big-{i}", "3") for i in range(5)) + pod("b", "900m")


def test_the_text_reports_placements_reasons_utilisation_and_nodes(tmp_path: Path) -> None:
    assert (
        text(simulated(tmp_path, CLUSTER), 7)
        == """\
7 pods waiting, 2 placed, 5 not placed (seed 7)

Not placed
  5  Insufficient cpu
     default/big-0, default/big-1, default/big-2 and 2 more

Requested in the cluster
  RESOURCE         BEFORE      AFTER        OF
  pods                  0  0%      2  10%   20
  cpu                   0  0%  2400m  80%    3
  memory                0  0%      0   0%  8Gi
  example.com/gpu       0  0%      0   0%    2

Fullest nodes
  NODE  cpu  memory  example.com/gpu  pods
  n2    90%      0%               0%  1/10
  n1    75%      0%                -  1/10

Emptiest nodes
  NODE  cpu  memory  example.com/gpu  pods
  n1    75%      0%                -  1/10
  n2    90%      0%               0%  1/10
"""
    )


def test_the_values_have_every_placement(tmp_path: Path) -> None:
    found = values(simulated(tmp_path, NODES + pod("a", "1500m") + pod("big", "3")), 7)
    assert found["seed"] == 7
    assert found["nodes"] == 2
    assert found["pods"] == {"waiting": 2, "placed": 1, "unplaced": 1}
    assert [(each["pod"], each["node"]) for each in found["placements"]] == [("default/a", "n1"), ("default/big", None)]
    first, second = (each["message"] for each in found["placements"])
    assert first is None
    assert second.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert found["unplaced"] == [{"reason": "Insufficient cpu", "count": 1, "pods": ["default/big"]}]
    assert found["utilisation"]["cpu"] == {"allocatable": 3000, "before": 0, "after": 1500}
    assert [node["name"] for node in found["fullest"]] == ["n1", "n2"]
    assert found["emptiest"][0] == {
        "name": "n2",
        "resources": {
            "pods": {"requested": 0, "allocatable": 10},
            "cpu": {"requested": 0, "allocatable": 1000},
            "memory": {"requested": 0, "allocatable": 4 << 30},
            "example.com/gpu": {"requested": 0, "allocatable": 2},
        },
    }
