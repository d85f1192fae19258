"""Simulations of small queues: placements, reasons of pods without a node, and utilization."""

from pathlib import Path
from typing import Any

from extender.analysis.recorded_cluster import load_cache, parse_recording, read_recording
from extender.analysis.simulate import (
    Simulation,
    SimulationOptions,
    format_simulation,
    make_placement,
    make_simulation_values,
    simulate,
)
from extender.answers.answer_struct import ResourceUse
from extender.answers.simulation import PlannedPreemption
from extender.api.kinds.disruption import PodDisruptionBudget
from extender.app import wiring
from extender.cache.cache import Cache

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


def run_simulation(tmp_path: Path, cluster: str, seed: int = 0, progress: Any = None) -> Simulation:
    path = tmp_path / "c.yaml"
    path.write_text(cluster)
    cache = load_cache(read_recording([str(path)]))
    profiles = wiring.build_setup().profiles
    return simulate(cache, profiles, wiring.make_runtime(), SimulationOptions(seed), progress=progress)


def test_placed_pods_use_resources_that_later_pods_lack(tmp_path: Path) -> None:
    simulation = run_simulation(tmp_path, NODES + pod("a", "1500m") + pod("b", "800m") + pod("c", "800m"))
    *placed, unplaced = simulation.placements
    assert placed == [make_placement("default/a", "n1"), make_placement("default/b", "n2")]
    assert (unplaced.pod, unplaced.node, unplaced.reason) == ("default/c", None, "Insufficient cpu")
    assert str(unplaced.message).startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_pods_are_scheduled_by_priority_then_by_file_order(tmp_path: Path) -> None:
    cluster = NODES + pod("late", "1m") + pod("high", "1m", "priority: 9, ") + pod("later", "1m")
    assert [placement.pod for placement in run_simulation(tmp_path, cluster).placements] == [
        "default/high",
        "default/late",
        "default/later",
    ]


def test_gated_pods_have_their_own_reason(tmp_path: Path) -> None:
    simulation = run_simulation(tmp_path, NODES + pod("a", "1m", "schedulingGates: [{name: x}], "))
    assert simulation.placements == (
        make_placement(
            "default/a",
            reasons=("not enqueued because of SchedulingGates: waiting for scheduling gates: [x]",),
            message="waiting for scheduling gates: [x]",
        ),
    )


def test_a_pod_of_another_scheduler_is_not_simulated(tmp_path: Path) -> None:
    assert run_simulation(tmp_path, NODES + pod("a", "1m", "schedulerName: other, ")).placements == ()


def test_a_cluster_without_nodes_places_nothing(tmp_path: Path) -> None:
    simulation = run_simulation(tmp_path, pod("a", "1m"))
    assert simulation.placements == (
        make_placement(
            "default/a",
            reasons=("no nodes available to schedule pods",),
            message="no nodes available to schedule pods",
        ),
    )
    assert format_simulation(simulation, 0) == (
        "1 pod waiting, 0 placed, 1 not placed (seed 0)\n\nNot placed\n"
        "  1  no nodes available to schedule pods\n     default/a\n"
    )


def test_a_pod_pinned_to_a_missing_node_is_not_placed(tmp_path: Path) -> None:
    affinity = (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchFields: [{key: metadata.name, operator: In, values: [gone]}]}]}}}, "
    )
    (placement,) = run_simulation(tmp_path, NODES + pod("a", "1m", affinity)).placements
    assert placement.reason == "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def test_resources_of_a_nominated_pod_are_reserved_against_pods_of_no_higher_priority(tmp_path: Path) -> None:
    cluster = NODES + pod("first", "1500m") + pod("nominated", "1", status="nominatedNodeName: n1")
    assert [placement.node for placement in run_simulation(tmp_path, cluster).placements] == [None, "n1"]


def test_equal_seeds_give_equal_placements_and_some_other_seed_does_not(tmp_path: Path) -> None:
    nodes = "".join(NODES.replace("n1", f"a{i}").replace("n2", f"b{i}") for i in range(4))
    cluster = nodes + "".join(pod(f"p{i}", "10m") for i in range(6))
    runs = [run_simulation(tmp_path, cluster, seed).placements for seed in (1, 1, 2, 3, 4)]
    assert runs[0] == runs[1]
    assert len({tuple(placement.node for placement in run) for run in runs}) > 1


def test_progress_is_reported_after_each_pod(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    run_simulation(tmp_path, NODES + pod("a", "1m") + pod("b", "1m"), progress=lambda *step: steps.append(step))
    assert steps == [(1, 2), (2, 2)]


def test_usage_has_requested_and_allocatable_amounts(tmp_path: Path) -> None:
    assigned = pod("old", "500m", "nodeName: n2, ")
    simulation = run_simulation(tmp_path, NODES + assigned + pod("a", "1500m"))
    assert simulation.usage_before.total == {
        "pods": ResourceUse(1, 20),
        "cpu": ResourceUse(500, 3000),
        "memory": ResourceUse(0, 8 << 30),
        "example.com/gpu": ResourceUse(0, 2),
    }
    assert simulation.usage_after.total["cpu"] == ResourceUse(2000, 3000)
    assert [(node.name, node.max_fraction) for node in simulation.usage_after.list_fullest_nodes(1)] == [("n1", 0.75)]
    assert [(node.name, node.max_fraction) for node in simulation.usage_after.list_emptiest_nodes(1)] == [("n2", 0.5)]


CLUSTER = NODES + pod("a", "1500m") + "".join(pod(f"big-{i}", "3") for i in range(5)) + pod("b", "900m")


def test_the_text_has_placements_reasons_utilization_and_nodes(tmp_path: Path) -> None:
    assert (
        format_simulation(run_simulation(tmp_path, CLUSTER), 7)
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

Nodes, the fullest first
  NODE  cpu  memory  example.com/gpu  pods
  n2    90%      0%               0%  1/10
  n1    75%      0%                -  1/10
"""
    )


def test_the_values_have_every_placement(tmp_path: Path) -> None:
    values = make_simulation_values(run_simulation(tmp_path, NODES + pod("a", "1500m") + pod("big", "3")), 7)
    assert values["seed"] == 7
    assert values["nodes"] == 2
    assert values["pods"] == {"waiting": 2, "placed": 1, "unplaced": 1}
    assert [(placement["pod"], placement["node"]) for placement in values["placements"]] == [
        ("default/a", "n1"),
        ("default/big", None),
    ]
    first, second = (placement["message"] for placement in values["placements"])
    assert first is None
    assert second.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert values["unplaced"] == [
        {
            "reason": "Insufficient cpu",
            "reasons": ["Insufficient cpu"],
            "reasonCodes": ["InsufficientCPU"],
            "count": 1,
            "pods": ["default/big"],
        }
    ]
    assert values["utilisation"]["cpu"] == {"allocatable": 3000, "before": 0, "after": 1500}
    assert [node["name"] for node in values["fullest"]] == ["n1", "n2"]
    assert values["emptiest"][0] == {
        "name": "n2",
        "resources": {
            "pods": {"requested": 0, "allocatable": 10},
            "cpu": {"requested": 0, "allocatable": 1000},
            "memory": {"requested": 0, "allocatable": 4 << 30},
            "example.com/gpu": {"requested": 0, "allocatable": 2},
        },
    }


PREEMPTION = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: low, labels: {app: low}}
spec: {nodeName: n1, priority: 0, containers: [{name: a, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: high}
spec: {priority: 100, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec: {priority: 50, containers: [{name: a, resources: {requests: {cpu: 1}}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: low}
spec: {selector: {matchLabels: {app: low}}}
status: {disruptionsAllowed: 1}
"""


def simulate_preemption(*, preempt: bool) -> tuple[Simulation, Cache]:
    setup = wiring.build_setup()
    recording = parse_recording(PREEMPTION.encode(), "c.yaml")
    cache = load_cache(recording)
    options = SimulationOptions(preempt=preempt)
    simulation = simulate(cache, setup.profiles, wiring.make_runtime(), options, recording=recording)
    return simulation, cache


def test_a_pod_that_would_preempt_names_the_node_and_the_victims() -> None:
    simulation, cache = simulate_preemption(preempt=False)
    assert [(placement.pod, placement.node, placement.preemption) for placement in simulation.placements] == [
        ("default/high", None, PlannedPreemption("n1", ["default/low"])),
        ("default/late", None, PlannedPreemption("n1", ["default/low"])),
    ]
    assert simulation.evicted_pods == ()
    assert "default/low" in cache.assigned_pods
    text = format_simulation(simulation, 0)
    assert "\nCould be placed after evictions (--preempt)\n  default/high on n1, in place of default/low\n" in text


def test_with_preemption_the_victims_are_evicted_and_their_budget_is_used() -> None:
    simulation, cache = simulate_preemption(preempt=True)
    assert [(placement.pod, placement.node) for placement in simulation.placements] == [
        ("default/high", "n1"),
        ("default/late", "n1"),
    ]
    assert simulation.evicted_pods == ("default/low",)
    assert sorted(cache.assigned_pods) == ["default/high", "default/late"]
    (budget,) = cache.snapshot().objects(PodDisruptionBudget).values()
    assert budget.status.disruptions_allowed == 0
    values = make_simulation_values(simulation, 0)
    assert values["evicted"] == ["default/low"]
    assert values["placements"][0]["preemption"] == {"node": "n1", "victims": ["default/low"]}
    text = format_simulation(simulation, 0)
    assert text.startswith("2 pods waiting, 2 placed, 0 not placed, 1 evicted (seed 0)\n")
    assert "\nPlaced after evictions\n  default/high on n1, in place of default/low\n" in text


def test_budgets_that_are_not_recorded_are_named_only_if_pods_are_evicted() -> None:
    """Budgets of a live cluster are not read if no pod on a node has a lower priority than the waiting pods."""
    setup, without_budget = wiring.build_setup(), PREEMPTION.partition("---\napiVersion: policy/v1")[0]
    for priority, missing_kinds in (("0", ("PodDisruptionBudget",)), ("100", ())):
        text = without_budget.replace("priority: 0", f"priority: {priority}")
        recording = parse_recording(text.encode(), "c.yaml")
        simulation = simulate(
            load_cache(recording),
            setup.profiles,
            wiring.make_runtime(),
            SimulationOptions(preempt=True),
            recording=recording,
        )
        assert simulation.missing_kinds == missing_kinds
