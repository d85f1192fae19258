"""The contents of the page Waiting pods: pods that are alike, grouped by the reason for which they wait."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from extender.analysis.explain import PodReport
from extender.analysis.explanation.explain_json import get_preemption_plan, list_feasible_node_names
from extender.analysis.explanation.near_misses import find_near_misses
from extender.analysis.explanation.plain_reasons import summarize_rejections
from extender.analysis.text_table import format_count
from extender.api.kinds.pod import Pod
from extender.cache.pod_groups import get_pod_group_key
from extender.cycle.explain_pod import PodExplanation
from extender.framework.status import Status

_MAX_NAMED_PODS = 3


@dataclass(frozen=True, slots=True)
class AlikePods:
    """Pending pods that are alike: they have the same explanation.

    Attributes:
        reason: the most frequent reason, which is the title of the group on the page.
        summary: a sentence about the nodes.
        message: kube-scheduler's message.
        owner: the kind and the name of the controller; empty without one.
        since: since when the first of the pods waits; None if the objects do not have a time.
        event: what happened at that time.
        near_miss_node: the node that is closest to being feasible; empty if there is none.
        near_miss_lines: what this node lacks, and what would help.
        victims: the pods that preemption would evict.
        group_key: the pod group of the first pod, `namespace/name`; empty without one.
        warnings: a line for each kind that the explanation depends on and that was not read.
    """

    keys: tuple[str, ...]
    reason: str
    summary: str
    message: str
    owner: str
    since: datetime | None
    event: str
    near_miss_node: str
    near_miss_lines: tuple[str, ...]
    victims: tuple[str, ...] = ()
    group_key: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """The waiting pods with the same most frequent reason.

    Attributes:
        pods: the pods that are alike, the largest number first.
    """

    reason: str
    pod_count: int
    pods: tuple[AlikePods, ...]


@dataclass(frozen=True, slots=True)
class OtherScheduler:
    """The number of pending pods of a scheduler without a profile, and the keys of the first ones."""

    name: str
    pod_count: int
    keys: tuple[str, ...]


def describe_waiting_pods(report: PodReport, pods: Sequence[Pod]) -> AlikePods:
    """Return the entry of pods with the same explanation.

    *report* is the explanation of the first of the *pods*.
    """
    explanation = report.explanation
    since, event = find_waiting_start(pods)
    feasible_count = len(list_feasible_node_names(explanation))
    near_misses = [] if feasible_count else find_near_misses(explanation, report.snapshot, 1)
    plan = get_preemption_plan(explanation.post_filter_run)
    return AlikePods(
        tuple(pod.key for pod in pods),
        _find_reason(report, feasible_count),
        _summarize(report, feasible_count),
        _get_message(explanation),
        format_owner(pods[0]),
        since,
        event,
        near_misses[0].node if near_misses else "",
        near_misses[0].lines if near_misses else (),
        () if plan is None else tuple(sorted(victim.key for victim in plan.best_candidate.victims)),
        get_pod_group_key(pods[0]) or "",
        tuple(report.warnings),
    )


def group_by_scheduler(pods: Iterable[Pod]) -> list[OtherScheduler]:
    """Return the schedulers of *pods* by name."""
    keys: dict[str, list[str]] = {}
    for pod in pods:
        keys.setdefault(pod.spec.scheduler_name, []).append(pod.key)
    return [OtherScheduler(name, len(names), tuple(names[:_MAX_NAMED_PODS])) for name, names in sorted(keys.items())]


def find_groups(groups: Sequence[Sequence[Pod]], text: str) -> Sequence[Sequence[Pod]]:
    """Return the groups of alike pods with a pod that has *text* in its key; all groups if *text* is empty."""
    return [pods for pods in groups if any(text in pod.key for pod in pods)] if text else groups


def group_by_reason(waiting: Iterable[AlikePods]) -> list[ReasonGroup]:
    """Return the groups by reason, the largest number of pods first."""
    by_reason: dict[str, list[AlikePods]] = {}
    for pods in waiting:
        by_reason.setdefault(pods.reason, []).append(pods)
    groups = [
        ReasonGroup(
            reason,
            sum(len(pods.keys) for pods in entries),
            tuple(sorted(entries, key=lambda pods: (-len(pods.keys), pods.keys[0]))),
        )
        for reason, entries in by_reason.items()
    ]
    return sorted(groups, key=lambda group: (-group.pod_count, group.reason))


def _find_reason(report: PodReport, feasible_count: int) -> str:
    """Return the reason of most nodes, where a node counts for the first plugin that rejects it."""
    explanation = report.explanation
    if explanation.pre_enqueue_status is not None:
        return f"not enqueued ({explanation.pre_enqueue_status.plugin})"
    if report.fits:
        return "a node fits now"
    if feasible_count:
        return "its pod group waits" if report.pod_group_outcome else "an error ended the attempt"
    diagnosis = explanation.diagnosis
    if diagnosis is not None and diagnosis.pre_filter_run.status is not None:
        return _format_status(diagnosis.pre_filter_run.status)
    counts = Counter(
        _format_status(node_status.first_failure)
        for node_status in explanation.nodes.values()
        if node_status.first_failure is not None
    )
    if not counts:
        return explanation.message or "unknown"
    return min(counts.items(), key=lambda item: (-item[1], item[0]))[0]


def _format_status(status: Status) -> str:
    return f"{', '.join(sorted(status.reasons))} ({status.plugin})"


def _summarize(report: PodReport, feasible_count: int) -> str:
    rejections = summarize_rejections(report.explanation)
    if not feasible_count:
        return rejections
    fits = f"fits on {feasible_count} of {format_count(len(report.explanation.node_names), 'node')}"
    return f"{fits}, but not on the others: {rejections}" if rejections else fits


def _get_message(explanation: PodExplanation) -> str:
    if explanation.pre_enqueue_status is not None:
        return ", ".join(explanation.pre_enqueue_status.reasons)
    return explanation.message or ""


def format_owner(pod: Pod) -> str:
    """Return the kind and the name of the pod's controller, such as `ReplicaSet shop/api-7f4b`; empty without one."""
    owner = pod.metadata.controller
    return "" if owner is None else f"{owner.kind} {pod.metadata.namespace}/{owner.name}"


def find_waiting_start(pods: Iterable[Pod]) -> tuple[datetime | None, str]:
    """Return since when the first of *pods* waits, in UTC, and what happened then; None and an empty text if unknown.

    A pod waits since its condition PodScheduled became false, or else since it was created.
    """
    starts = [start for pod in pods if (start := _find_start(pod)) is not None]
    if not starts:
        return None, ""
    time, event = min(starts, key=lambda start: start[0])
    try:
        return time.astimezone(UTC), event
    except OverflowError:  # the first or the last day of the years 1 to 9999, in a time zone that is ahead or behind
        return time.replace(tzinfo=UTC), event


def format_utc(time: datetime) -> str:
    """Return *time*, which is in UTC, such as `2026-11-23 10:00:00 UTC`. The year has four digits."""
    return f"{time.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def format_age(start: datetime, now: datetime) -> str:
    """Return the time from *start* to *now* in its two largest units, such as `2 h 5 min`."""
    return format_seconds((now - start).total_seconds())


def format_seconds(duration: float) -> str:
    """Return a duration in seconds in its two largest units, such as `2 h 5 min`; `0 s` if it is negative."""
    seconds = max(int(duration), 0)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _find_start(pod: Pod) -> tuple[datetime, str] | None:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.last_transition_time:
            return condition.last_transition_time, condition.reason or "PodScheduled is False"
    creation_time = pod.metadata.creation_timestamp
    return None if creation_time is None else (creation_time, "created")
