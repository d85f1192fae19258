"""Observers see each plugin call and extension point, under kube-scheduler's names. A slow plugin is reported once."""

from random import Random

from extender.app import wiring
from extender.cycle import binding_cycle
from extender.cycle.decision import ScheduleFailure, ScheduleResult
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.observer import ObservedEvent, PluginObserver, SlowCallObserver
from extender.framework.plugin_runner import PluginRunner
from extender.framework.status import Code, Status
from extender.scheduler.extender_cycle import recheck_selected_node
from tests.build import make_cluster, make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness


class RecordingObserver(PluginObserver):
    """Records extension points and plugin calls."""

    def __init__(self) -> None:
        self.extension_points: list[tuple[str, str, Code]] = []

        self.calls: list[tuple[str, str, Code]] = []
        self.events: list[tuple[ObservedEvent, tuple[str, ...]]] = []

    def observe_plugin_call(self, plugin: str, point: str, code: Code, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append((plugin, point, code))

    def observe_extension_point(self, profile: str, point: str, code: Code, seconds: float) -> None:
        assert seconds >= 0
        self.extension_points.append((profile, point, code))

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        assert value >= 0
        self.events.append((event, labels))


def test_each_extension_point_of_a_scheduling_cycle_is_observed_once() -> None:
    observer, profile = RecordingObserver(), wiring.build_setup().first_profile
    runtime = wiring.make_runtime(observer)
    cluster = make_cluster(make_node("a"), make_node("b")).snapshot()
    pod_info = cluster.make_pod_info(make_pod())

    run_pre_enqueue_plugins(pod_info, cluster, profile, runtime)
    schedule_pod(pod_info, cluster, profile, runtime, Random(1), NodeSampler())

    points = ["PreEnqueue", "PreFilter", "Filter", "PreScore", "Score"]
    assert observer.extension_points == [("default-scheduler", point, Code.SUCCESS) for point in points]


def test_checks_of_a_node_that_kube_scheduler_does_not_make_are_not_observed() -> None:
    """Otherwise, PreFilter and Filter would have twice as many observations as attempts."""
    harness, observer = SchedulerHarness(make_node("a")), RecordingObserver()
    profile, runtime = harness.profile, harness.context.runtimes["default-scheduler"]
    with harness.cache.read() as snapshot:
        pod_info = snapshot.make_pod_info(make_pod())
        decision = schedule_pod(pod_info, snapshot, profile, runtime, Random(1), NodeSampler())
    assert isinstance(decision, ScheduleResult)
    harness.cache.add_or_update_node(make_node("b"))
    runtime.runner.add_observer(observer)

    rechecked = recheck_selected_node(harness.context, pod_info, profile, snapshot, decision)
    assert isinstance(rechecked, ScheduleResult)
    assert rechecked.suggested_host == "a"
    assert binding_cycle.recheck_node(pod_info, "a", None, harness.cache, profile, runtime) is None
    assert (observer.extension_points, observer.calls) == ([], [])

    run_pre_enqueue_plugins(pod_info, harness.cache.snapshot(), profile, runtime)
    assert observer.extension_points == [("default-scheduler", "PreEnqueue", Code.SUCCESS)]


def test_extension_points_and_calls_of_a_binding_cycle_are_observed() -> None:
    """The executor of a plan observes it, not the plugin runner."""
    observer, profile = RecordingObserver(), wiring.build_setup().first_profile
    runtime = wiring.make_runtime(observer)
    cluster = make_cluster(make_node("a")).snapshot()
    pod_info = cluster.make_pod_info(make_pod())

    decision = schedule_pod(pod_info, cluster, profile, runtime, Random(1), NodeSampler())
    assert isinstance(decision, ScheduleResult)
    observer.extension_points.clear()

    assert binding_cycle.run_reserve_plugins(pod_info, "a", cluster, profile, runtime, decision.cycle_state) is None
    binding_cycle.run_permit_plugins(pod_info, "a", cluster, profile, runtime, decision.cycle_state)
    binding_cycle.run_pre_bind_pre_flights(pod_info, "a", profile, runtime, decision.cycle_state)
    plan = binding_cycle.run_bind_plugins(pod_info, "a", profile, runtime)
    assert not isinstance(plan, Status)
    assert "Bind" not in {point for _, point, _ in observer.calls}
    runtime.runner.observe_plan(plan[0], "Bind", None, runtime.runner.start_timer())
    binding_cycle.run_post_bind_plugins(pod_info, "a", profile, runtime, decision.cycle_state)

    extension_points = [("Reserve", Code.SUCCESS), ("Permit", Code.SUCCESS), ("PreBindPreFlight", Code.SKIP)]
    assert observer.extension_points == [
        ("default-scheduler", *point) for point in (*extension_points, ("PostBind", Code.SUCCESS))
    ]
    assert ("VolumeBinding", "PreBindPreFlight", Code.SKIP) in observer.calls
    assert observer.calls[-1] == ("DefaultBinder", "Bind", Code.SUCCESS)


def test_plugin_calls_are_observed_with_their_codes() -> None:
    observer, profile = RecordingObserver(), wiring.build_setup().first_profile
    runtime = wiring.make_runtime(observer)
    cluster = make_cluster(make_node("a")).snapshot()
    pod_info = cluster.make_pod_info(make_pod(requests={"cpu": "5"}))

    decision = schedule_pod(pod_info, cluster, profile, runtime, Random(1), NodeSampler())

    assert isinstance(decision, ScheduleFailure)
    assert {
        ("NodePorts", "PreFilter", Code.SKIP),
        ("NodeResourcesFit", "PreFilter", Code.SUCCESS),
        ("NodeResourcesFit", "Filter", Code.UNRESOLVABLE),
        ("DefaultPreemption", "PostFilter", Code.UNSCHEDULABLE),
    } <= set(observer.calls)
    assert observer.extension_points[-1] == ("default-scheduler", "PostFilter", Code.UNSCHEDULABLE)


def test_an_added_observer_sees_the_calls_too() -> None:
    observer, added, profile = RecordingObserver(), RecordingObserver(), wiring.build_setup().first_profile
    cluster = make_cluster(make_node("a")).snapshot()
    for runtime in (wiring.make_runtime(observer), wiring.make_runtime()):
        added.calls.clear()
        runtime.runner.add_observer(added)
        schedule_pod(cluster.make_pod_info(make_pod()), cluster, profile, runtime, Random(1), NodeSampler())
        assert ("NodeResourcesFit", "Filter", Code.SUCCESS) in added.calls
    assert ("NodeResourcesFit", "Filter", Code.SUCCESS) in observer.calls
    assert observer.extension_points


def test_two_observers_get_each_event() -> None:
    first, second = RecordingObserver(), RecordingObserver()
    runner = PluginRunner((first, SlowCallObserver(lambda _: None)))
    runner.add_observer(second)
    runner.observe_event(ObservedEvent.PREEMPTION_EVALUATION, ("pod", "Success"), 0.5)
    assert first.events == second.events == [(ObservedEvent.PREEMPTION_EVALUATION, ("pod", "Success"))]


def test_a_slow_plugin_is_reported_once() -> None:
    lines: list[str] = []
    observer = SlowCallObserver(lines.append)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.1)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.25)
    observer.observe_plugin_call("Own", "Score", Code.SUCCESS, 3.0)
    assert lines == ['plugin "Own" is slow: one call of Filter took 250 ms, want at most 100 ms']
    assert observer.slow_plugins == {"Own": 0.25}


def test_an_exempt_plugin_is_not_reported() -> None:
    lines: list[str] = []
    observer = SlowCallObserver(lines.append, exempt_plugins=("NodeName",))
    observer.observe_plugin_call("NodeName", "Filter", Code.SUCCESS, 1.0)
    observer.observe_plugin_call("Own", "Filter", Code.SUCCESS, 0.2)
    assert lines == ['plugin "Own" is slow: one call of Filter took 200 ms, want at most 100 ms']
