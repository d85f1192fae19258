"""Dry runs of several pods with proposed nodes."""

from typing import Any

import pytest

from extender.app import wiring
from extender.cache.hypothesis import Hypothesis
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.snapshot import Snapshot
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import run_pre_filter_plugins
from extender.framework.plugin_runner import PluginRunner
from extender.framework.status import Status
from extender.preemption.assignment_dry_run import Assignment, AssignmentDryRun
from extender.preemption.disruption_budgets import Budgets
from extender.preemption.preemption_units import PreemptionUnit
from tests.build import make_cluster
from tests.unit.preemption.builders import HOST, make_preemptor, make_small_node, make_victim

PROFILE = wiring.build_setup().first_profile
WEB = {"app": "web"}
ALONE: dict[str, Any] = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": HOST, "labelSelector": {"matchLabels": WEB}}
            ]
        }
    }
}

SPREAD = {
    "topologySpreadConstraints": [
        {
            "topologyKey": HOST,
            "maxSkew": 9,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": WEB},
        }
    ]
}


class Preparation:
    """A dry run of pods a and b of one CPU on n1, which has two, with all running pods removed."""

    def __init__(self, *running: Any, nominated: tuple[Any, ...] = (), **spec: Any) -> None:
        cache = make_cluster(make_small_node("n1"), make_small_node("n2"), *running)
        for pod in nominated:
            cache.nominate(pod, "n1")
        self.snapshot: Snapshot = cache.snapshot()
        self.pods: dict[str, AssignedPodInfo] = {pod.pod.metadata.name: pod for pod in self.snapshot.assigned_pods()}
        hypothesis = Hypothesis(self.snapshot)
        for pod in self.pods.values():
            hypothesis.remove_pod(pod)
        runtime = PluginRuntime()
        assignments = []
        for name in "ab":
            pod_info = self.snapshot.make_pod_info(make_preemptor(name, cpu="1", spec=spec))
            run = run_pre_filter_plugins(pod_info, hypothesis.snapshot(), PROFILE, runtime)
            assignments.append(Assignment(pod_info, "n1", run.cycle_state, run.skipped_plugins))
        self.dry_run = AssignmentDryRun(hypothesis.snapshot(), assignments, PROFILE, runtime)

    def restore(self, *names: str) -> Status | None:
        self.dry_run.restore_pods([self.pods[name] for name in names])
        return self.dry_run.find_rejection()


@pytest.mark.parametrize(
    ("node", "reasons"), [("n1", ("Insufficient cpu",)), ("n2", None)], ids=["the proposed node", "another node"]
)
def test_a_pod_takes_space_only_on_its_own_node(node: str, reasons: tuple[str, ...] | None) -> None:
    """The node fits both pods exactly, so that the earlier pod must be assumed for a third pod to be too much."""
    rejection = Preparation(make_victim("v", node)).restore("v")
    assert (None if rejection is None else rejection.reasons) == reasons


def test_the_same_dry_run_can_be_repeated() -> None:
    preparation = Preparation(make_victim("v", "n1"))
    assert preparation.dry_run.find_rejection() is None
    assert preparation.restore("v") is not None
    preparation.dry_run.remove_pods([preparation.pods["v"]])
    assert preparation.dry_run.find_rejection() is None


def test_the_state_of_plugins_follows_the_pods() -> None:
    preparation = Preparation(make_victim("v", "n1", cpu="0", labels=WEB), **ALONE)
    rejection = preparation.restore("v")
    assert rejection is not None
    assert rejection.plugin == "InterPodAffinity"
    preparation.dry_run.remove_pods([preparation.pods["v"]])
    assert preparation.dry_run.find_rejection() is None


@pytest.mark.parametrize(("priority", "fits"), [(100, False), (99, True)], ids=["an equal priority", "a lower one"])
def test_a_nominated_pod_of_at_least_the_same_priority_takes_space(priority: int, fits: bool) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods (1.37)."""
    nominated = make_preemptor("other", cpu="1", priority=priority)
    assert (Preparation(nominated=(nominated,)).dry_run.find_rejection() is None) is fits


def test_a_missing_node_is_an_error() -> None:
    snapshot = make_cluster(make_small_node("n1")).snapshot()
    assignment = Assignment(snapshot.make_pod_info(make_preemptor()), "gone", {}, frozenset(PROFILE.plugins))
    rejection = AssignmentDryRun(snapshot, [assignment], PROFILE, PluginRuntime()).find_rejection()
    assert rejection is not None
    assert rejection.message == 'nodeinfo not found for node name "gone"'


def test_only_the_pods_on_the_node_of_a_victim_are_filtered_if_no_filter_depends_on_other_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preparation = Preparation(make_victim("v", "n2", cpu="3"), make_victim("w", "n1"))
    filtered: list[str] = []
    filter_pod = AssignmentDryRun._filter

    def record_and_filter(dry_run: AssignmentDryRun, assignment: Assignment) -> Status | None:
        filtered.append(assignment.pod.pod.metadata.name)
        return filter_pod(dry_run, assignment)

    monkeypatch.setattr(AssignmentDryRun, "_filter", record_and_filter)
    units = [PreemptionUnit(1, [preparation.pods[name]]) for name in "vw"]
    victims, _ = preparation.dry_run.reprieve_units(units, Budgets(()))
    assert [unit.pods[0].pod.metadata.name for unit in victims] == ["w"]
    assert filtered == ["a", "b", "a", "b"], "at the start, and after w was restored"


def test_victims_are_restored_only_for_the_filters_that_read_the_pods_on_their_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preparation = Preparation(make_victim("v", "n2"), make_victim("w", "n1"))
    calls: list[str] = []
    restore_pods, run_filter = AssignmentDryRun.restore_pods, PluginRunner.filter

    def record_and_restore(dry_run: AssignmentDryRun, pods: list[AssignedPodInfo]) -> None:
        calls.extend(f"restore {pod.pod.metadata.name}" for pod in pods)
        restore_pods(dry_run, pods)

    def record_and_run(runner: PluginRunner, plugin: Any, *arguments: Any) -> Any:
        calls.append(plugin.name)
        return run_filter(runner, plugin, *arguments)

    monkeypatch.setattr(AssignmentDryRun, "restore_pods", record_and_restore)
    monkeypatch.setattr(PluginRunner, "filter", record_and_run)
    units = [PreemptionUnit(1, [preparation.pods[name]]) for name in "vw"]
    preparation.dry_run.reprieve_units(units, Budgets(()))
    assert calls[calls.index("restore w") :] == ["restore w", *["NodeResourcesFit"] * 2]
    assert "restore v" not in calls


def test_no_cache_key_is_computed_for_a_skipped_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    preparation, checked_plugins = Preparation(make_victim("w", "n1")), set[str]()
    is_local = AssignmentDryRun._is_local

    def record_and_check(dry_run: AssignmentDryRun, plugin: Any, pod: Any) -> bool:
        checked_plugins.add(plugin.name)
        return is_local(dry_run, plugin, pod)

    monkeypatch.setattr(AssignmentDryRun, "_is_local", record_and_check)
    preparation.dry_run.reprieve_units([PreemptionUnit(1, [preparation.pods["w"]])], Budgets(()))
    skipped_plugins = preparation.dry_run._assignments[0].skipped_plugins
    assert "InterPodAffinity" in skipped_plugins
    assert checked_plugins == {plugin.name for plugin in PROFILE.filter_plugins} - skipped_plugins


@pytest.mark.parametrize(
    ("spec", "changes"),
    [(ALONE, ["w True"]), (SPREAD, ["v True", "v False", "w True"])],
    ids=["affinity", "topology spread, whose minimum depends on all changes"],
)
def test_states_that_are_the_same_later_do_not_change_for_a_victim_that_a_local_filter_rejects(
    spec: dict[str, Any], changes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    preparation = Preparation(make_victim("v", "n1"), make_victim("w", "n2", cpu="0"), **spec)
    changed: list[str] = []

    def record(_dry_run: AssignmentDryRun, _assignment: Assignment, pod: AssignedPodInfo, *, adding: bool) -> None:
        changed.append(f"{pod.pod.metadata.name} {adding}")

    monkeypatch.setattr(AssignmentDryRun, "_update_states", record)
    units = [PreemptionUnit(1, [preparation.pods[name]]) for name in "vw"]
    victims, _ = preparation.dry_run.reprieve_units(units, Budgets(()))
    assert [unit.pods[0].pod.metadata.name for unit in victims] == ["v"]
    assert changed == [change for change in changes for _ in "ab"], "once for each pod of the group"
