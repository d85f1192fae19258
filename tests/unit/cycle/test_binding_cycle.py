"""Reserve, Permit, PreBindPreFlight, PreBind and Bind: the outcome of each plugin result."""

from typing import Any

import pytest

from extender.api.kinds.node import Node
from extender.cache.pod_info import PodInfo
from extender.cycle import binding_cycle
from extender.cycle.binding_cycle import recheck_node
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.api_plan import ApiCall, ApiPlan
from extender.framework.binding_points import (
    ALLOW,
    PermitResult,
    PostBindResult,
    PreBindPreFlightResult,
    UnreserveResult,
)
from extender.framework.profiles import Profile
from extender.framework.status import SUCCESS, Code, Status
from extender.framework.waiting_pods import WaitingPodSignal
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import make_profile
from tests.unit.scheduler.builders import SchedulerHarness

CLUSTER = make_cluster(make_node("n1")).snapshot()
POD = CLUSTER.make_pod_info(make_pod("web"))
WRITE = ApiPlan((ApiCall("bind", "Pod", "default", "web", {}, "binding"),))
NO_PLAN = "returned the status Success without a reason, want an ApiPlan"
SKIP, NO = Status(Code.SKIP), Status(Code.UNSCHEDULABLE, ("no",))


class RecordingPlugin:
    """A plugin with these results that records its calls."""

    def __init__(self, name: str, calls: list[str], **results: Any) -> None:
        self.name, self._calls = name, calls
        for point, result in results.items():
            setattr(self, point, self._answering(point, result))

    def _answering(self, point: str, result: Any) -> Any:
        def method(*_: Any) -> Any:
            self._calls.append(f"{self.name}.{point}")
            if isinstance(result, Exception):
                raise result
            return result

        return method


def make_steps(calls: list[str], *results: dict[str, Any]) -> Profile:
    """Make a profile of plugins P0, P1, ... with these results."""
    return make_profile(*(RecordingPlugin(f"P{i}", calls, **results) for i, results in enumerate(results)))


def test_reserve_plugins_run_in_order() -> None:
    calls: list[str] = []
    profile = make_steps(calls, {"reserve": None, "unreserve": None}, {"reserve": None, "unreserve": None})

    assert binding_cycle.run_reserve_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {}) is None
    assert calls == ["P0.reserve", "P1.reserve"]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (NO, Status(Code.UNSCHEDULABLE, ("no",), "P1")),
        (ValueError("lost"), Status(Code.ERROR, ('running Reserve plugin "P1": ValueError: lost',), "P1")),
        (Status(Code.ERROR, ("lost",)), Status(Code.ERROR, ('running Reserve plugin "P1": lost',), "P1")),
        (5, Status(Code.ERROR, ('running Reserve plugin "P1": returned int 5, want Status or None',), "P1")),
    ],
    ids=[
        "a rejection is the plugin's own",
        "what is raised is an error",
        "an error is told with its place",
        "a number is no status",
    ],
)
def test_no_plugin_reserves_after_a_failure_and_unreserve_runs_in_reverse_order(result: Any, status: Status) -> None:
    """Unreserve also runs for plugins whose Reserve did not run.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunReservePluginsReserve (1.36).
    """
    calls: list[str] = []
    unreserve = {"unreserve": None}
    profile = make_steps(
        calls, {"reserve": None, **unreserve}, {"reserve": result, **unreserve}, {"reserve": None, **unreserve}
    )

    assert binding_cycle.run_reserve_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {}) == status
    binding_cycle.run_unreserve_plugins(POD, "n1", profile, PluginRuntime(), {})
    assert calls == ["P0.reserve", "P1.reserve", "P2.unreserve", "P1.unreserve", "P0.unreserve"]


def test_unreserve_goes_on_after_an_error() -> None:
    calls: list[str] = []
    steps = [{"reserve": None, "unreserve": result} for result in (None, ValueError("oh"), "done")]
    profile = make_steps(calls, *steps)

    errors = binding_cycle.run_unreserve_plugins(POD, "n1", profile, PluginRuntime(), {}).errors

    assert calls == ["P2.unreserve", "P1.unreserve", "P0.unreserve"]
    assert [str(error) for error in errors] == [
        "running Unreserve plugin \"P2\": returned str 'done', want UnreserveResult or tuple or list or None",
        'running Unreserve plugin "P1": ValueError: oh',
    ]


def test_the_effects_of_unreserve_are_collected_in_reverse_order_of_the_plugins() -> None:
    undo, other = WRITE.calls[0], make_pod("other")
    steps = [
        {"reserve": None, "unreserve": result}
        for result in (
            UnreserveResult((undo,), {"a": "left", "b": "left"}),
            (undo,),
            UnreserveResult(uids_to_reject={"c": "also left"}, pods_to_activate=(other,)),
        )
    ]

    outcome = binding_cycle.run_unreserve_plugins(POD, "n1", make_steps([], *steps), PluginRuntime(), {})

    assert outcome == binding_cycle.UnreserveOutcome(
        (undo, undo),
        rejections=(
            WaitingPodSignal("P2", "c", "also left"),
            WaitingPodSignal("P0", "a", "left"),
            WaitingPodSignal("P0", "b", "left"),
        ),
        pods_to_activate=(other,),
    )


def test_a_post_bind_plugin_that_fails_does_not_stop_the_next_one() -> None:
    first, second = make_pod("first"), make_pod("second")
    results = (PostBindResult((first,)), ValueError("oh"), "done", None, PostBindResult((second,)))
    profile = make_steps([], *({"post_bind": result} for result in results))

    outcome = binding_cycle.run_post_bind_plugins(POD, "n1", profile, PluginRuntime(), {})

    assert outcome.pods_to_activate == (first, second)
    assert [str(error) for error in outcome.errors] == [
        'running PostBind plugin "P1": ValueError: oh',
        "running PostBind plugin \"P2\": returned str 'done', want PostBindResult or None",
    ]


def test_permit_rejects_waiting_pods_before_it_allows_others() -> None:
    both = PermitResult(uids_to_allow=("a", "b"), uids_to_reject={"b": "gave up"})
    profile = make_steps([], {"permit": both}, {"permit": PermitResult(uids_to_reject={"a": "no"})})

    outcome = binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {})

    assert outcome.signals == (
        WaitingPodSignal("P0", "b", "gave up"),
        WaitingPodSignal("P0", "a"),
        WaitingPodSignal("P0", "b"),
        WaitingPodSignal("P1", "a", "no"),
    )


def test_permit_collects_waiting_plugins_and_caps_their_timeouts() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPermitPlugins (1.36)."""
    wait = Status(Code.WAIT, ("for the others",))
    profile = make_steps(
        [], {"permit": PermitResult(wait, 30)}, {"permit": ALLOW}, {"permit": PermitResult(wait, 7200)}
    )

    outcome = binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {})

    assert outcome.timeouts == {"P0": 30, "P2": 900}
    assert outcome.status == Status(
        Code.WAIT, ("for the others", "one or more plugins asked to wait and no plugin rejected pod")
    )


def test_a_rejecting_permit_plugin_ends_the_run() -> None:
    calls: list[str] = []
    profile = make_steps(calls, {"permit": PermitResult(NO)}, {"permit": ALLOW})

    assert binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {}).status == Status(
        Code.UNSCHEDULABLE, ("no",), "P0"
    )
    assert calls == ["P0.permit"]


@pytest.mark.parametrize(
    "failing", [PermitResult(NO), ValueError("oh")], ids=["a later plugin rejects the pod", "a later plugin fails"]
)
def test_pods_that_permit_released_stay_released_when(failing: Any) -> None:
    """A plugin of kube-scheduler allows the pods during its call.

    Source: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, GangScheduling.Permit (1.36).
    """
    released = PermitResult(uids_to_allow=("other",), pods_to_activate=(POD.pod,))
    profile = make_steps([], {"permit": released}, {"permit": failing})

    outcome = binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, profile, PluginRuntime(), {})

    assert outcome.status is not None
    assert (outcome.timeouts, outcome.signals, outcome.pods_to_activate) == (
        {},
        (WaitingPodSignal("P0", "other"),),
        (POD.pod,),
    )


def test_without_permit_plugins_the_pod_is_allowed() -> None:
    assert binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, make_profile(), PluginRuntime(), {}).status is None


RUNS_ALONE, RUNS_PARALLEL = PreBindPreFlightResult(), PreBindPreFlightResult(allow_parallel=True)


@pytest.mark.parametrize(
    ("results", "groups"),
    [
        ([RUNS_PARALLEL, RUNS_PARALLEL], [["P0", "P1"]]),
        ([RUNS_PARALLEL, RUNS_ALONE, RUNS_PARALLEL], [["P0"], ["P1"], ["P2"]]),
        ([RUNS_PARALLEL, SKIP, RUNS_PARALLEL], [["P0"], ["P2"]]),
        ([RUNS_PARALLEL, PreBindPreFlightResult(allow_parallel=True, skip=True), RUNS_PARALLEL], [["P0", "P2"]]),
        ([SKIP, RUNS_ALONE], [["P1"]]),
    ],
    ids=[
        "plugins that may run side by side are one group",
        "one that must run alone closes the group",
        "even if it is skipped",
        "but not if it might have run beside them",
        "a skipped plugin is not run",
    ],
)
def test_pre_bind_plugins_run_in_groups(results: list[Any], groups: list[list[str]]) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.getPreBindPluginGroups (1.36)."""
    profile = make_steps([], *({"pre_bind": WRITE, "pre_bind_pre_flight": result} for result in results))

    outcome = binding_cycle.run_pre_bind_pre_flights(POD, "n1", profile, PluginRuntime(), {})

    assert [[plugin.name for plugin in group] for group in outcome.groups] == groups
    assert outcome.status is None


def test_if_all_plugins_skip_pre_bind_is_skipped() -> None:
    profile = make_steps([], {"pre_bind": WRITE, "pre_bind_pre_flight": SKIP})

    assert binding_cycle.run_pre_bind_pre_flights(POD, "n1", profile, PluginRuntime(), {}).status == SKIP


def test_an_unsupported_pre_flight_code_is_an_error() -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreBindPreFlights (1.36)."""
    profile = make_steps([], {"pre_bind": WRITE, "pre_bind_pre_flight": NO})

    status = binding_cycle.run_pre_bind_pre_flights(POD, "n1", profile, PluginRuntime(), {}).status

    assert status == Status(
        Code.ERROR,
        (
            'PreBindPreFlight P0 returned "Unschedulable", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status",
        ),
        "P0",
    )


def test_a_result_of_pre_bind_or_permit_of_another_type_is_an_error_of_the_plugin() -> None:
    steps = {"pre_bind": None, "pre_bind_pre_flight": None, "permit": None}
    profile, runtime = make_steps([], steps), PluginRuntime()
    statuses = [
        binding_cycle.run_pre_bind_pre_flights(POD, "n1", profile, runtime, {}).status,
        binding_cycle.run_pre_bind_plugin(profile.pre_bind_plugins[0], POD, "n1", CLUSTER, runtime, {}),
        binding_cycle.run_permit_plugins(POD, "n1", CLUSTER, profile, runtime, {}).status,
    ]
    assert [status.message if isinstance(status, Status) else status for status in statuses] == [
        'running PreBindPreFlight "P0": returned None, want PreBindPreFlightResult or Status',
        'running PreBind plugin "P0": returned None, want ApiPlan or Status',
        'running Permit plugin "P0": returned None, want PermitResult',
    ]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([SKIP, WRITE], WRITE),
        ([WRITE, NO], WRITE),
        ([SKIP, NO], Status(Code.UNSCHEDULABLE, ("no",), "P1")),
        ([SKIP], Status(Code.SKIP, ("every Bind plugin returned the status Skip, so none binds the pod",))),
        ([SUCCESS], Status(Code.ERROR, (f'running Bind plugin "P0": {NO_PLAN}',), "P0")),
        ([ValueError("down")], Status(Code.ERROR, ('running Bind plugin "P0": ValueError: down',), "P0")),
        ([None], Status(Code.ERROR, ('running Bind plugin "P0": returned None, want ApiPlan or Status',), "P0")),
    ],
    ids=[
        "the first that does not skip binds",
        "nobody is asked after it",
        "a rejection is final",
        "all skip",
        "a success that binds nothing is an error",
        "a fault is an error",
        "no result is an error",
    ],
)
def test_the_first_bind_plugin_that_does_not_skip_binds(results: list[Any], expected: ApiPlan | Status) -> None:
    """Source: pkg/scheduler/schedule_one.go, Scheduler.bind; pkg/scheduler/framework/runtime/framework.go,
    frameworkImpl.RunBindPlugins (1.36).
    """
    result = binding_cycle.run_bind_plugins(POD, "n1", make_steps([], *({"bind": a} for a in results)), PluginRuntime())
    assert (result if isinstance(result, Status) else result[1]) == expected


TAINTED = {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}
TOLERATING = {"tolerations": [{"key": "maintenance", "operator": "Exists"}]}
BY_LABEL = {"nodeSelector": {"disk": "ssd"}}
CHANGED = 'node "n1" changed before the pod was bound to it: '


def recheck(harness: SchedulerHarness, pod_info: PodInfo, node_at_decision: Node | None) -> Status | None:
    """Recheck n1."""
    runtime = harness.context.runtimes["default-scheduler"]
    return recheck_node(pod_info, "n1", node_at_decision, harness.cache, harness.profile, runtime)


@pytest.mark.parametrize(
    ("pod", "changed_node", "message"),
    [
        ({}, None, 'node "n1" was deleted before the pod was bound to it'),
        ({}, {"unschedulable": True}, CHANGED + "node(s) were unschedulable"),
        ({}, TAINTED, CHANGED + "node(s) had untolerated taint(s)"),
        (TOLERATING, TAINTED, ""),
        (BY_LABEL, {"labels": {"disk": "ssd"}}, ""),
        (BY_LABEL, {}, CHANGED + "node(s) didn't match Pod's node affinity/selector"),
        ({}, {"allocatable": {"cpu": "1m", "pods": "1"}}, ""),
    ],
    ids=[
        "gone", "cordoned", "tainted", "tainted and tolerated", "label still there", "label gone",
        "smaller, which is for the kubelet to refuse",
    ],
)  # fmt: skip
def test_a_changed_node_is_rechecked(pod: dict[str, Any], changed_node: dict[str, Any] | None, message: str) -> None:
    harness = SchedulerHarness(make_node("n1", labels={"disk": "ssd"}))
    node_at_decision = harness.cache.get_node("n1")
    if changed_node is None:
        harness.cache.remove_node("n1")
    else:
        harness.cache.add_or_update_node(make_node("n1", **changed_node))
    pod_info = harness.cache.snapshot().make_pod_info(make_pod("web", spec=pod))
    status = recheck(harness, pod_info, node_at_decision)
    assert ("" if status is None else status.message) == message


def test_an_unchanged_node_is_not_rechecked() -> None:
    harness = SchedulerHarness(make_node("n1", unschedulable=True))
    pod_info = harness.cache.snapshot().make_pod_info(make_pod("web"))
    assert recheck(harness, pod_info, harness.cache.get_node("n1")) is None
    unknown = recheck(harness, pod_info, None)
    assert unknown is not None
    assert unknown.message == CHANGED + "node(s) were unschedulable"


def test_a_pod_is_retried_elsewhere_if_its_node_is_cordoned_before_the_binding() -> None:
    harness = SchedulerHarness(make_node("n1"))
    pod = make_pod("web", requests={"cpu": "1"})
    call = harness.api.call

    async def cordoned_meanwhile(api_call: Any, *checks: Any) -> None:
        if api_call.subresource == "binding" and harness.cache.snapshot().row("n2") is None:
            harness.dispatcher.on_update(make_node("n1"), make_node("n1", unschedulable=True))
            harness.dispatcher.on_add(make_node("n2"))
        await call(api_call, *checks)

    harness.api.call = cordoned_meanwhile
    harness.create(pod)
    harness.run(turns=2)

    assert harness.node_of(pod) == "n2"
    assert len(harness.api.calls_to("binding")) == 1
    assert [reason for _, reason, _ in harness.events.recorded] == ["FailedScheduling", "Scheduled"]
