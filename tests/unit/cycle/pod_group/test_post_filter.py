"""The PodGroupPostFilter plugins of 1.37, and their outcome for the members."""

from collections.abc import Generator
from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest

from extender.app import wiring
from extender.cache.snapshot import Snapshot
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pod_group.post_filter import FailedGroupAttempt
from extender.cycle.pod_group_cycle import schedule_pod_group
from extender.cycle.pod_group_members import GroupDecision
from extender.framework.api_plan import ApiPlan
from extender.framework.pod_group_points import PodGroupPostFilterResult
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status, error_status, unresolvable_status, unschedulable_status
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group

GROUP_TEXT = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
MERGED = wiring.build_setup(gates=FeatureGates({"GenericWorkload": True}, RELEASE_1_37)).first_profile


class FixedPostFilter:
    """Returns one result, after a dry run on the same snapshot."""

    def __init__(self, name: str, result: PodGroupPostFilterResult | Exception) -> None:
        self.name = name
        self.result = result
        self.decisions: list[GroupDecision] = []

    def pod_group_post_filter(
        self, attempt: FailedGroupAttempt
    ) -> Generator[Snapshot, GroupDecision, PodGroupPostFilterResult]:
        self.decisions.append((yield attempt.snapshot))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def decided(*plugins: FixedPostFilter) -> GroupDecision:
    """Schedule a gang of two on a node for one; member a fits and member b does not."""
    pods = [make_group_member(name, requests={"cpu": "1"}) for name in "ab"]
    node = make_node("n1", allocatable={"cpu": "1", "memory": "4Gi", "pods": "9"})
    snapshot = make_cluster(node, make_pod_group(min_count=2), *pods).snapshot()
    profile = replace(MERGED, pod_group_post_filter_plugins=cast("Any", plugins))
    members = [snapshot.make_pod_info(pod) for pod in pods]
    return schedule_pod_group(members, snapshot, profile, PluginRuntime(), Random(0), NodeSampler())


def outcomes(decision: GroupDecision) -> list[tuple[str, str | None]]:
    failures = [decision.get_member_failure(index) for index in range(2)]
    return [(failure.status.message, failure.nominated_node) for failure in failures if failure is not None]


def result(status: Status, plan: Any = None, **nominations: str) -> PodGroupPostFilterResult:
    names = {f"uid-default-{name}": node for name, node in nominations.items()}
    return PodGroupPostFilterResult(status, plan, names)


def test_a_plugin_that_succeeds_nominates_the_members() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, applyPodGroupPostFilterResult (1.37)."""
    plan = object()
    first = FixedPostFilter("First", result(unschedulable_status("no"), ApiPlan()))
    second = FixedPostFilter("Second", result(Status(Code.SUCCESS, ("helped",)), plan, a="n1", b="n1"))
    decision = decided(first, second, FixedPostFilter("Third", result(SUCCESS)))
    assert decision.status == unschedulable_status(GROUP_TEXT, "helped").with_plugin("GangScheduling")
    assert decision.waits_for_preemption
    assert (decision.preemption_plan, decision.api_plans) == (plan, (ApiPlan(),))
    assert outcomes(decision) == [(f"{GROUP_TEXT}, helped", "n1"), (NO_CPU, "n1")]


def test_the_reasons_of_all_plugins_that_reject_are_joined() -> None:
    plugins = [FixedPostFilter(name, result(unschedulable_status(name))) for name in ("x", "y")]
    decision = decided(*plugins)
    assert decision.status.message == f"{GROUP_TEXT}, x, y"
    assert not decision.waits_for_preemption
    assert outcomes(decision) == [(f"pod group is unschedulable, {GROUP_TEXT}, x, y", ""), (NO_CPU, None)]
    (dry_run,) = plugins[0].decisions
    assert dry_run.status.message == GROUP_TEXT


def test_an_unresolvable_rejection_ends_the_run() -> None:
    plugins = (FixedPostFilter("x", result(unresolvable_status("x"))), FixedPostFilter("y", result(SUCCESS)))
    assert decided(*plugins).status.message == f"{GROUP_TEXT}, x"


def test_without_plugins_the_message_ends_with_an_empty_reason() -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, applyPodGroupPostFilterResult (1.37)."""
    assert decided().status.message == f"{GROUP_TEXT}, "


@pytest.mark.parametrize(
    "failure", [result(error_status("broken")), RuntimeError("broken")], ids=["error", "exception"]
)
def test_an_error_of_a_plugin_is_the_status_of_the_group(failure: PodGroupPostFilterResult | Exception) -> None:
    decision = decided(FixedPostFilter("x", failure))
    assert decision.status.code is Code.ERROR
    assert decision.status.message.startswith('error in "x" PodGroupPostFilter plugins: ')
    assert outcomes(decision) == [(decision.status.message, "")] * 2


@pytest.mark.parametrize(
    ("failure", "code"), [(error_status("broken"), Code.UNSCHEDULABLE), (unschedulable_status("x"), None)]
)
def test_the_queue_does_not_count_an_error_of_a_plugin(failure: Status, code: Code | None) -> None:
    """Source: pkg/scheduler/schedule_one_podgroup.go, Scheduler.podGroupCycle (1.37)."""
    queue_status = decided(FixedPostFilter("x", result(failure))).queue_status
    assert (queue_status and queue_status.code) == code


def build(release: Release, **plugins: Any) -> Profile:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    gates = FeatureGates({"GenericWorkload": True}, release)
    return wiring.build_setup_from_document(document, "f", gates).first_profile


def names_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.pod_group_post_filter_plugins]


def test_the_default_plugins_of_the_extension_point() -> None:
    """Source: pkg/scheduler/apis/config/testing/defaults/defaults.go (1.37)."""
    assert names_of(MERGED) == ["DynamicResources", "DefaultPreemption"]
    assert names_of(build(RELEASE_1_36)) == ["DefaultPreemption"]


def test_a_configuration_changes_the_plugins_of_the_extension_point() -> None:
    disabled = {"disabled": [{"name": "DynamicResources"}]}
    assert names_of(build(RELEASE_1_37, podGroupPostFilter=disabled)) == ["DefaultPreemption"]
    reordered = {"enabled": [{"name": "DefaultPreemption"}]}
    assert names_of(build(RELEASE_1_37, podGroupPostFilter=reordered)) == ["DefaultPreemption", "DynamicResources"]


def test_a_configuration_may_not_enable_another_or_a_removed_plugin() -> None:
    with pytest.raises(ConfigError, match='plugin "NodeName" does not extend PodGroupPostFilterPlugin plugin'):
        build(RELEASE_1_37, podGroupPostFilter={"enabled": [{"name": "NodeName"}]})
    with pytest.raises(ConfigError, match=r"podGroupPostFilter\.enabled\[0\]: Invalid value: \"EBSLimits\""):
        build(RELEASE_1_37, podGroupPostFilter={"enabled": [{"name": "EBSLimits"}]})


def test_in_1_36_the_extension_point_is_an_unknown_field() -> None:
    with pytest.raises(ConfigError) as caught:
        build(RELEASE_1_36, podGroupPostFilter={"disabled": [{"name": "*"}]})
    assert str(caught.value) == 'profiles[0].plugins.podGroupPostFilter: unknown field "podGroupPostFilter"'
