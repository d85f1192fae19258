"""The answers about the whole cluster: a summary, what a change would do, and how many copies of a pod fit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Final

import msgspec

from extender.analysis.pod_placer import PodPlacer
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import Recording, parse_recording
from extender.analysis.required_kinds import describe_missing_budgets, get_plural
from extender.analysis.text_table import format_amount, format_count, format_percent, format_table
from extender.analysis.utilization import PODS_RESOURCE, calculate_cluster_usage
from extender.answers.planning import FitCount
from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.pod import Pod
from extender.cache.cache import Cache
from extender.cli.mcp.answer_pages import QuestionError
from extender.cli.mcp.loaded_cluster import LoadedCluster
from extender.cli.planning.cluster_input import (
    describe_kinds_of_outcome,
    find_target_pods,
    group_replicated_pods,
    select_pods,
)
from extender.cli.planning.scenario_input import ScenarioFlags, copy_new_pods, read_scenario
from extender.config.documents import dump_yaml
from extender.planning.fits import count_fitting_copies, format_fit, format_fit_table
from extender.planning.rebalance.empty_nodes import empty_nodes
from extender.planning.rebalance.fix_violations import fix_violations
from extender.planning.rebalance.make_room import make_room
from extender.planning.rebalance.move_simulator import MoveSimulator
from extender.planning.rebalance.plan import SearchLimits
from extender.planning.rebalance.report import RebalancePlan, format_rebalance, make_rebalance_values
from extender.planning.scenario import Scenario
from extender.planning.what_if import WhatIfRunner
from extender.planning.what_if_report import format_what_if, make_what_if_values

_MAX_RESOURCES = 12
_MAX_ATTEMPTS = 20_000
"""The maximum number of scheduling cycles of a search for a plan, a fifth of that of the command line."""

MAX_SECONDS: Final = 30.0
"""Limit of the time of a question about a change, copies of a pod or a plan; other questions wait for its answer."""


class TimeLimitError(Exception):
    """A question takes too long. Its changes of the loaded cluster are not undone."""


def _make_time_check(loaded: LoadedCluster) -> Callable[..., None]:
    """Return a function for each pod or attempt. It raises `TimeLimitError` `MAX_SECONDS` after this call.

    It also raises an exception if the client has cancelled the question.
    """
    end = monotonic() + MAX_SECONDS

    def check(*_: int) -> None:
        loaded.check_cancelled()
        if monotonic() >= end:
            limit = f"the question takes more than {MAX_SECONDS:.0f} s"
            raise TimeLimitError(f"{limit}; ask for less at once, or use the command line, which has no limit")

    return check


def answer_summary(loaded: LoadedCluster) -> str:
    """Return the numbers of nodes and pods, the use of each resource, and the fullest and emptiest nodes."""
    cache = loaded.explainer.cache
    with cache.read() as snapshot:
        usage = calculate_cluster_usage(snapshot)
    groups = loaded.explainer.groups
    waiting = sum(map(len, groups))
    cordoned = sum(node.spec.unschedulable for node in cache.nodes)
    lines = [
        f"{format_count(len(cache.nodes), 'node')}, {cordoned} cordoned",
        f"{format_count(len(cache.assigned_pods), 'pod')} on nodes, {waiting} waiting in "
        f"{format_count(len(groups), 'group')} of alike pods (why_waiting)",
        f"scheduler: {', '.join(loaded.profiles)}, rules of Kubernetes {loaded.setup.gates.release.version}",
        "",
        "Requested in the cluster",
    ]
    rows = [("RESOURCE", "REQUESTED", "", "OF")]
    for name, resource in list(usage.total.items())[:_MAX_RESOURCES]:
        requested, allocatable = resource.requested, resource.allocatable
        amounts = format_amount(name, requested), format_percent(requested, allocatable)
        rows.append((name, *amounts, format_amount(name, allocatable)))
    lines += format_table(rows, right_aligned=[1, 2, 3])
    for title, nodes in usage.list_nodes_by_title().items():
        lines += ["", title]
        for node in nodes:
            pods = node.resources.get(PODS_RESOURCE)
            count = format_count(pods.requested if pods else 0, "pod")
            lines.append(f"  {node.name}: {100 * node.max_fraction:.0f}% of its scarcest resource, {count}")
    missing = [get_plural(kind) for kind in sorted(loaded.recording.unreadable_kinds)]
    if missing:
        lines += ["", f"could not be read: {', '.join(missing)}"]
    return "\n".join(lines) + "\n"


def answer_what_if(loaded: LoadedCluster, flags: ScenarioFlags, manifest: str, *, full: bool) -> str:
    """Return what moves, waits, is lost or evicted after a change. *manifest* has new pods as YAML or JSON.

    Raises:
        BadParameter, InputError, ScenarioError: the change is invalid.
        QuestionError: nothing changes.
        TimeLimitError: the question takes too long.
    """
    scenario = read_scenario(replace(flags, replicas=1), loaded.cluster)
    runner = loaded.runner
    if manifest:
        cluster = loaded.make_changeable_copy()
        templates = select_pods([_parse(manifest, "pods")], cluster)
        scenario = replace(scenario, pods=copy_new_pods(templates, flags.replicas))
        runner = WhatIfRunner(cluster.cache, loaded.profiles, loaded.runtime)
    if replace(scenario, preempt=False) == Scenario():
        raise QuestionError('nothing changes; name a change, such as drain=["node-1"]')
    outcome = runner.run(scenario, progress=_make_time_check(loaded))
    lines = describe_kinds_of_outcome(loaded.recording, loaded.profiles, outcome, drains_nodes=bool(scenario.drain))
    note = "".join(f"# {line}\n" for line in lines) + (_make_budget_note(loaded) if scenario.drain else "")
    if full:
        return note + dump_yaml(make_answer(AnswerKind.WHAT_IF, make_what_if_values(outcome)))
    return note + format_what_if(outcome)


def answer_fits(loaded: LoadedCluster, manifest: str, like: str, namespace: str, *, limit: int, full: bool) -> str:
    """Return how many copies fit: of each pod or workload in *manifest*, or of the existing pod *like*.

    Raises:
        InputError: the manifest is invalid, or there is no such pod.
        QuestionError: there is not exactly one of both.
        TimeLimitError: the question takes too long.
    """
    if bool(manifest) is bool(like):
        raise QuestionError("want either a manifest, or the name of an existing pod in like")
    if manifest:
        cluster = loaded.make_changeable_copy()
        cache = cluster.cache
        pods = [entry.pod for entry in group_replicated_pods(select_pods([_parse(manifest, "manifest")], cluster))]
    else:
        _ = loaded.runner  # nominates pending pods
        cache, pods = loaded.cluster.cache, loaded.find_pods(like, namespace)[:1]
    results = _count(loaded, cache, pods, limit)
    if full:
        return dump_yaml({"shapes": msgspec.to_builtins(results)})
    return format_fit(results[0]) if len(results) == 1 else format_fit_table(results)


def _count(loaded: LoadedCluster, cache: Cache, pods: Sequence[Pod], limit: int) -> list[FitCount]:
    check = _make_time_check(loaded)
    return [
        count_fitting_copies(cache, pod, PodPlacer(cache, loaded.profiles, loaded.runtime), limit=limit, progress=check)
        for pod in pods
    ]


def _parse(manifest: str, argument: str) -> Recording:
    """Return the objects in the text of an *argument*, which errors name."""
    return parse_recording(manifest.encode(), argument, checks_manifests=True)


def answer_rebalance(loaded: LoadedCluster, pod: str, namespace: str, *, question: str, full: bool) -> str:
    """Return a plan of evictions. The question `for` is about the waiting pods that *pod* names.

    Raises:
        InputError: there is no such pod, or it has a node.
        QuestionError: the question `for` has no pod.
        TimeLimitError: the question takes too long.
    """
    if question == "for" and not pod:
        raise QuestionError('the question "for" needs a pod; name it in pod')
    cluster = loaded.copy_cluster()
    simulator = MoveSimulator(cluster.cache, loaded.profiles, loaded.runtime, on_attempt=_make_time_check(loaded))
    limits = SearchLimits(max_attempts=_MAX_ATTEMPTS)
    plan: RebalancePlan
    if question == "for":
        plan = make_room(simulator, find_target_pods(PodSelection((pod,), namespace), cluster), limits)
    elif question == "empty":
        plan = empty_nodes(simulator, limits=limits)
    else:
        plan = fix_violations(simulator, limits)
    note = _make_budget_note(loaded)
    if full:
        return note + dump_yaml(make_answer(AnswerKind.REBALANCE, make_rebalance_values(plan)))
    return note + format_rebalance(plan)


def _make_budget_note(loaded: LoadedCluster) -> str:
    """Return the first line of an answer with evictions, also a comment in YAML; empty if the budgets were read."""
    note = describe_missing_budgets(loaded.recording.recorded_kinds, loaded.recording.unreadable_kinds)
    return f"# {note}\n" if note else ""
