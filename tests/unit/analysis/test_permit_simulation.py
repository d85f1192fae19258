"""Simulations with gangs and Permit: a gang is placed as a whole or not at all."""

from dataclasses import replace
from typing import Any

import pytest

from extender.analysis.simulate import Simulation, make_placement, simulate
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.binding_points import PermitResult, UnreserveResult
from extender.framework.extension_points import PostFilterResult
from extender.framework.status import Code, Status, error_status, unschedulable_status
from tests.build import make_cluster, make_node, make_pod
from tests.pod_group_builders import make_group_member, make_pod_group
from tests.unit.cycle.fakes import make_profile

GATES = FeatureGates({"GenericWorkload": True, "GangScheduling": True}, RELEASE_1_36)
GANG_PROFILES = wiring.build_setup(gates=GATES).profiles
ALLOCATABLE = {"cpu": "2", "memory": "4Gi", "pods": "9"}
CPU = {"cpu": "1"}


def run_simulation(cache: Cache, profiles: Any = GANG_PROFILES) -> Simulation:
    return simulate(cache, profiles, PluginRuntime())


def nodes_by_pod(simulation: Simulation) -> dict[str, str | None]:
    return {placement.pod: placement.node for placement in simulation.placements}


def test_a_gang_that_fits_is_placed() -> None:
    members = [make_group_member(name, requests=CPU) for name in "ab"]
    simulation = run_simulation(
        make_cluster(make_node("n", allocatable=ALLOCATABLE), make_pod_group(min_count=2), *members)
    )
    assert nodes_by_pod(simulation) == {"default/a": "n", "default/b": "n"}


def test_a_gang_that_does_not_fit_is_not_placed() -> None:
    """The group is scheduled as a whole, so no member is tried alone."""
    members = [make_group_member(name, requests=CPU) for name in "abc"]
    cache = make_cluster(
        make_node("n", allocatable=ALLOCATABLE), make_pod_group(min_count=3), *members, make_pod("last", requests=CPU)
    )
    simulation = run_simulation(cache)
    assert nodes_by_pod(simulation) == {"default/a": None, "default/b": None, "default/c": None, "default/last": "n"}
    waiting = "waiting for minCount pods from a gang to be scheduled"
    message = f"pod group is unschedulable, {waiting}, one or more plugins asked to wait and no plugin rejected pod"
    assert [placement.message for placement in simulation.placements[:2]] == [message, message]
    assert simulation.placements[2].reason == "Insufficient cpu"


def test_a_pod_group_with_two_schedulers_is_rejected() -> None:
    """The group is rejected before any filter runs.

    Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.frameworkForPodGroup (1.36).
    """
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "x"}, {"schedulerName": "y"}],
    }
    members = [make_group_member(name, spec={"schedulerName": name}) for name in "xy"]
    profiles = wiring.build_setup_from_document(document, "f", GATES).profiles
    simulation = run_simulation(
        make_cluster(make_node("n", allocatable=ALLOCATABLE), make_pod_group(), *members), profiles
    )
    message = "all pods in a single pod group should have the same .spec.schedulerName set"
    assert [placement.message for placement in simulation.placements] == [f'{message}, got: "y" and "x"'] * 2


def test_without_the_pod_group_cycle_a_gang_that_does_not_fit_is_unreserved() -> None:
    """Its pods wait on Permit until they time out.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.Permit (1.36).
    """
    members = [make_group_member(name, requests=CPU) for name in "abc"]
    cache = make_cluster(make_node("n", allocatable=ALLOCATABLE), make_pod_group(min_count=3), *members)
    profiles = {
        name: replace(profile, gates=FeatureGates(release=profile.release)) for name, profile in GANG_PROFILES.items()
    }
    simulation = run_simulation(cache, profiles)
    assert nodes_by_pod(simulation) == {"default/a": None, "default/b": None, "default/c": None}
    reason = "waiting for minCount pods from a gang to be scheduled"
    timeout = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert simulation.placements[0] == make_placement(
        "default/a", reasons=(reason,), message=f"0/1 nodes are available: 1 {timeout}."
    )
    assert simulation.placements[2].reason == "Insufficient cpu"
    assert not cache.snapshot().pods_on("n")


def test_an_incomplete_gang_is_not_enqueued() -> None:
    simulation = run_simulation(
        make_cluster(
            make_node("n", allocatable=ALLOCATABLE),
            make_pod_group(min_count=2),
            make_group_member("a"),
            make_pod("alone"),
        )
    )
    assert nodes_by_pod(simulation) == {"default/a": None, "default/alone": "n"}
    assert simulation.placements[0].reason.startswith(
        "not enqueued because of GangScheduling: waiting for minCount pods"
    )


def test_a_pod_rejected_by_permit_frees_its_node() -> None:
    class Gatekeeper:
        name = "Gatekeeper"

        def permit(self, pod: Any, *_: Any) -> PermitResult:
            return PermitResult(unschedulable_status("not this one") if pod.pod.metadata.name == "a" else None)

    cache = make_cluster(make_node("n", allocatable=ALLOCATABLE), make_pod("a"), make_pod("b"))
    simulation = run_simulation(cache, {"default-scheduler": make_profile(Gatekeeper())})
    assert simulation.placements == (
        make_placement("default/a", reasons=("not this one",), message="0/1 nodes are available: 1 not this one."),
        make_placement("default/b", "n"),
    )
    assert len(cache.snapshot().pods_on("n")) == 1


@pytest.mark.parametrize(
    ("status", "reasons", "message"),
    [
        (
            unschedulable_status("no quota", "no licence"),
            ("no licence", "no quota"),
            "0/1 nodes are available: 1 no licence, 1 no quota.",
        ),
        (
            error_status("timeout"),
            ('running Permit plugin "Gatekeeper": timeout',),
            'running Permit plugin "Gatekeeper": timeout',
        ),
    ],
)
def test_the_reasons_of_a_rejection_by_permit_are_apart_and_an_error_names_the_plugin(
    status: Status, reasons: tuple[str, ...], message: str
) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.prepareForBindingCycle (1.37)."""

    class Gatekeeper:
        name = "Gatekeeper"

        def permit(self, *_: Any) -> PermitResult:
            return PermitResult(status)

    cache = make_cluster(make_node("n", allocatable=ALLOCATABLE), make_pod("a"))
    simulation = run_simulation(cache, {"default-scheduler": make_profile(Gatekeeper())})
    assert simulation.placements == (make_placement("default/a", reasons=reasons, message=message),)


class LargeGang:
    """All pods wait for each other, except the pod `last`. A pod that fits no node rejects them, as Unreserve does."""

    name = "LargeGang"

    def __init__(self, *, with_post_filter: bool) -> None:
        self.waiting: list[str] = []
        if with_post_filter:
            self.post_filter = self.reject_all

    def reject_all(self, *_: Any) -> PostFilterResult:
        return PostFilterResult(unschedulable_status("gave up"), uids_to_reject=dict.fromkeys(self.waiting, "gave up"))

    def reserve(self, *_: Any) -> None:
        """Return success."""

    def permit(self, pod: Any, *_: Any) -> PermitResult:
        if pod.pod.metadata.name == "last":
            return PermitResult(unschedulable_status("not this one"))
        self.waiting.append(pod.uid)
        return PermitResult(Status(Code.WAIT, ("for the others",)), 60.0)

    def unreserve(self, *_: Any) -> UnreserveResult:
        return UnreserveResult(uids_to_reject=dict.fromkeys(self.waiting, "another one left"))


@pytest.mark.parametrize(
    ("with_post_filter", "last_cpu", "message"),
    [(True, "5000", "gave up"), (False, "1", "another one left")],
    ids=["PostFilter", "Unreserve"],
)
def test_the_waiting_pods_of_a_large_gang_leave_their_nodes_when_plugins_reject_them(
    with_post_filter: bool, last_cpu: str, message: str
) -> None:
    """The Unreserve of each of them rejects the others."""
    count = 1200
    node = make_node("n", allocatable={"cpu": "4000", "memory": "4Gi", "pods": "9999"})
    pods = [make_pod(f"p{number:04}", requests=CPU) for number in range(count)]
    cache = make_cluster(node, *pods, make_pod("last", requests={"cpu": last_cpu}, priority=-1))
    plugin = LargeGang(with_post_filter=with_post_filter)
    fits = wiring.build_setup().first_profile.plugins["NodeResourcesFit"]
    simulation = run_simulation(cache, {"default-scheduler": make_profile(fits, plugin)})
    assert {placement.node for placement in simulation.placements} == {None}
    assert {placement.message for placement in simulation.placements[:count]} == {
        f"0/1 nodes are available: 1 {message}."
    }
    assert not cache.snapshot().pods_on("n")
