"""What whole scheduling cycles of extender decide: of pods of several profiles, and with HTTP extenders."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, cast

from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods
from extender.api.kinds.pod import Pod
from extender.api.requests import is_resize_deferred
from extender.app import wiring
from extender.basics.clock import SystemClock
from extender.cache.cache import Cache
from extender.client.extender import HttpExtender, build_extenders
from extender.config.feature_gates import FeatureGates
from extender.cycle.binding_cycle import make_assumed_pod, run_reserve_plugins, run_unreserve_plugins
from extender.cycle.decision import Decision, ScheduleFailure
from extender.cycle.node_sampling import NodeSampler
from extender.cycle.pre_enqueue import run_pre_enqueue_plugins
from extender.cycle.scheduling_cycle import schedule_pod
from extender.framework.profiles import Profile
from extender.framework.status import Status
from extender.preemption.plan import PreemptionPlan
from extender.scheduler.binding_task import BindingTask, _make_failure
from extender.scheduler.context import SchedulerContext
from extender.scheduler.extender_cycle import schedule_with_extenders
from tests.oracle.extender_scripts import Script, ScriptedTransport


def ask_cycles(cycles: dict[str, Any], setup: wiring.SchedulerSetup, cache: Cache, rng: Random) -> dict[str, Any]:
    """Return the outcomes of scheduling cycles by the key of the pod.

    Args:
        cycles: `extenders`, the script of each extender of the configuration, and perhaps `sequence`, the keys of
            pending pods that are scheduled one after another. Without, every pending pod is scheduled alone.
        setup: the configuration.
        cache: the cluster.
        rng: what selects one of several equal nodes.
    """
    context = _make_context(cycles["extenders"], setup, cache, rng)
    return asyncio.run(_run_cycles(context, setup, cache, cycles.get("sequence", ())))


async def _run_cycles(
    context: SchedulerContext, setup: wiring.SchedulerSetup, cache: Cache, sequence: Sequence[str]
) -> dict[str, Any]:
    for name, profile in setup.profiles.items():
        nominate_pending_pods(cache, profile, context.runtimes[name])
    if sequence:
        pods = {pod.key: pod for pod in list_pending_pods(cache, setup.profiles)}
        return {key: await _run_and_apply(context, pods[key]) for key in sequence if key in pods}
    deferred = (pod for profile in setup.profiles.values() for pod in list_deferred_resizes(cache, profile))
    return {pod.key: await _run_cycle(context, pod) for pod in (*list_pending_pods(cache, setup.profiles), *deferred)}


def list_deferred_resizes(cache: Cache, profile: Profile) -> list[Pod]:
    """Return the pods on nodes that are scheduled again because their resize is deferred."""
    pods = (pod.pod_with_node_name for pod in cache.assigned_pods.values())
    return [
        pod
        for pod in pods
        if profile.resize_preemption
        and is_resize_deferred(pod)
        and pod.metadata.deletion_timestamp is None
        and pod.spec.scheduler_name == profile.scheduler_name
    ]


def _make_context(
    scripts: Sequence[Script], setup: wiring.SchedulerSetup, cache: Cache, rng: Random
) -> SchedulerContext:
    configs = setup.configuration.extenders
    script_by_url = {config.url_prefix: script for config, script in zip(configs, scripts, strict=True)}
    extenders = build_extenders(configs)
    for extender in extenders:
        extender._transport = cast("Any", ScriptedTransport(extender.name, script_by_url[extender.name]))
    nothing: Any = None
    return SchedulerContext(
        cache=cache,
        queue=nothing,
        profiles=setup.profiles,
        runtimes={name: wiring.make_runtime() for name in setup.profiles},
        api=nothing,
        recorder=nothing,
        may_act=lambda: True,
        metrics=nothing,
        clock=SystemClock(),
        rng=rng,
        wake=lambda: None,
        gates=FeatureGates(),
        node_sampler=NodeSampler(has_extenders=bool(extenders)),
        extenders=extenders,
    )


async def _run_and_apply(context: SchedulerContext, pod: Pod) -> dict[str, Any]:
    """Run the cycle of a pod and apply its outcome: a scheduled pod is assumed, and victims are gone."""
    answer = await _run_cycle(context, pod, keeps=True)
    if not answer["held"] and answer["nominatedNode"] is not None:
        context.cache.nominate(pod, answer["nominatedNode"])
    for uid in [uid for uid, info in context.cache.assigned_pods.items() if info.key in answer["victims"]]:
        context.cache.remove_pod(uid)
    return answer


async def _run_cycle(context: SchedulerContext, pod: Pod, *, keeps: bool = False) -> dict[str, Any]:
    profile, runtime = context.profiles[pod.spec.scheduler_name], context.runtimes[pod.spec.scheduler_name]
    answer: dict[str, Any] = {"held": False, "node": "", "message": None, "rejectors": [], "victims": []}
    answer["nominatedNode"] = None
    with context.cache.read() as snapshot:
        info = snapshot.make_pod_info(pod)
        if run_pre_enqueue_plugins(info, snapshot, profile, runtime) is not None:
            return {**answer, "held": True}
        extenders: list[HttpExtender] = [each for each in context.extenders if each.is_interested(pod)]
        decision: Decision
        if extenders:
            decision = await schedule_with_extenders(context, info, profile, extenders, snapshot)
        else:
            decision = schedule_pod(info, snapshot, profile, runtime, context.rng, context.node_sampler)
        if isinstance(decision, ScheduleFailure):
            return {**answer, **_describe_failure(decision)}
        if pod.spec.node_name:
            message = f"pod {info.uid}({info.key}) is in the cache, so can't be assumed"
            return {**answer, "message": message, "nominatedNode": ""}
        node, state = decision.suggested_host, decision.cycle_state
        status = run_reserve_plugins(info, node, snapshot, profile, runtime, state)
        if not keeps or status is not None:
            run_unreserve_plugins(info, node, profile, runtime, state)
    if keeps and status is None:
        context.cache.assume(make_assumed_pod(pod, node, profile, state), node)
    return {**answer, **({"node": node} if status is None else _describe_reserve_failure(status))}


def _describe_reserve_failure(status: Status) -> dict[str, Any]:
    nothing: Any = None
    failure = _make_failure(BindingTask(nothing, nothing, nothing, nothing, 0.0), status)
    return {
        "message": failure.status.message,
        "rejectors": sorted(failure.rejectors),
        "nominatedNode": failure.nominated_node,
    }


def _describe_failure(failure: ScheduleFailure) -> dict[str, Any]:
    plans = [plan for plan in failure.post_filter_plans.values() if isinstance(plan, PreemptionPlan)]
    victims = [victim for plan in plans for victim in plan.best_candidate.victims]
    return {
        "message": failure.message,
        "rejectors": sorted(failure.rejectors),
        "nominatedNode": failure.nominated_node,
        "victims": sorted(victim.key for victim in victims if victim.pod.metadata.deletion_timestamp is None),
    }
