"""Apply the results of plugins to other pods: allow or reject waiting pods, and activate queued pods.

Source: kube-scheduler/framework/interface.go, Handle, PodActivator (1.36).
"""

from collections.abc import Iterable

from extender.api.kinds.pod import Pod
from extender.framework.waiting_pods import WaitingPodSignal
from extender.scheduler.context import SchedulerContext


def resume_decided_pods(context: SchedulerContext) -> None:
    """Resume the binding cycles of waiting pods whose Permit is decided."""
    for waiting_pod in context.waiting_pods.pop_decided_pods(context.clock.monotonic()):
        permit_decided = context.permit_decided_events.pop(waiting_pod.pod.uid, None)
        if permit_decided is not None:
            permit_decided.set()


def apply_plugin_effects(
    context: SchedulerContext, signals: Iterable[WaitingPodSignal], pods_to_activate: Iterable[Pod] = ()
) -> None:
    """Send *signals* to waiting pods, and move *pods_to_activate* to the active queue.

    The binding cycles of waiting pods that are decided continue in later steps of the event loop. A pod that a plugin
    rejects then runs its own Unreserve, and is requeued as rejected by that plugin.

    Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, waitingPod.Allow, waitingPod.Reject;
    pkg/scheduler/schedule_one.go, Scheduler.prepareForBindingCycle, Scheduler.bindingCycle (1.36).
    """
    signals, pods_to_activate = tuple(signals), tuple(pods_to_activate)
    if signals:
        context.waiting_pods.send(signals)
        resume_decided_pods(context)
    if pods_to_activate:
        context.queue.activate(pods_to_activate, context.clock.monotonic())
        context.wake()
