"""Pods that PreEnqueue rejects."""

from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.framework.status import Code, Status
from extender.plugins.scheduling_gates import SchedulingGates
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import RaisingPlugin, make_profile


def test_a_gated_pod_does_not_enter_the_queue() -> None:
    snapshot = make_cluster(make_node("a")).snapshot()
    gated = snapshot.make_pod_info(make_pod(spec={"schedulingGates": [{"name": "quota"}]}))

    assert run_pre_enqueue_plugins(gated, snapshot, make_profile(SchedulingGates()), PluginRuntime()) == Status(
        Code.UNRESOLVABLE, ("waiting for scheduling gates: [quota]",), "SchedulingGates"
    )
    assert (
        run_pre_enqueue_plugins(
            snapshot.make_pod_info(make_pod()), snapshot, make_profile(SchedulingGates()), PluginRuntime()
        )
        is None
    )


def test_an_exception_in_pre_enqueue_rejects_the_pod_and_names_the_plugin() -> None:
    snapshot = make_cluster(make_node("a")).snapshot()

    status = run_pre_enqueue_plugins(
        snapshot.make_pod_info(make_pod()), snapshot, make_profile(RaisingPlugin()), PluginRuntime()
    )

    assert status == Status(Code.ERROR, ('running PreEnqueue plugin "Broken": ValueError: out of order',), "Broken")
