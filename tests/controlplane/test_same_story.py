"""kube-scheduler and ours are shown the same pods, one after the other: same events, same metrics."""

import re
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.controlplane import acts, events
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.test_same_pages import Pages, flags

CONFIGURATION: Final[dict[str, Any]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 2}}]}]
}

Labels = frozenset[tuple[str, str]]

NOT_HERE: Final = {
    r"scheduler_batch_|scheduler_get_node_hint|scheduler_store_schedule": "pods are not decided about in batches",
    r".*extension_point=Sign": "as above",
    r"scheduler_goroutines.operation=(Filter|Score|InterPodAffinity|PodTopologySpread)": "plugins have no workers",
    r"rest_client_.*=PUT": "claims and volumes are patched",
    r"rest_client_transport_create_calls_total.result=hit": "sessions are not shared",
    r"workqueue_": "there are none",
    r"kubernetes_build_info|version_info": "differ by nature",
    r"scheduler_unschedulable_pods|scheduler_inflight_events": "told once a page was asked for meanwhile",
    r"scheduler_plugin_execution_duration_seconds": "one call in ten, drawn by chance",
    r"scheduler_queueing_hint_execution.*hint=": "plugins are asked in an order drawn by chance, up to the first Queue",
    r"scheduler_queue_incoming.*event=(AssignedPodDelete|BackoffComplete|PopFrom)": "by how long other things took",
    r"rest_client_requests_total.*code=4": "a matter of chance, or over a session that is not counted",
}
"""Labels of kube-scheduler that ours does not have, or need not have in the same run, and why."""


@dataclass(frozen=True, slots=True)
class Story:
    """What there was to see.

    Attributes:
        told: the events.
        page: the metrics.
    """

    told: dict[str, list[tuple[str, ...]]]
    page: str


@pytest.fixture(scope="module")
def stories(control_plane: ControlPlane) -> tuple[Story, Story]:
    """kube-scheduler's and ours."""
    return _story(control_plane, ours=False), _story(control_plane, ours=True)


def _story(plane: ControlPlane, *, ours: bool) -> Story:
    with plane.api() as api:
        try:
            events.forget(api)
            for thing in [*acts.nodes(), *acts.things()]:
                api.create(thing)
            plane.controllers(*acts.CONTROLLERS)
            api.wait_until("PersistentVolume", acts.all_available, "the volumes' becoming available")
            pages = _scheduler(plane, ours=ours)
            acts.perform(api)
            acts.until_told(api)
            pages.ask("/metrics", plane.token(ADMIN))  # callers are counted once they were answered
            return Story(acts.told(api), pages.ask("/metrics", plane.token(ADMIN))[1])
        finally:
            plane.end_guests()
            api.clean()


def _scheduler(plane: ControlPlane, *, ours: bool) -> Pages:
    port = free_ports(1)[0]
    start = plane.ours if ours else plane.scheduler
    pages = Pages(start(CONFIGURATION, *flags(plane, port)), port)
    pages.wait()
    return pages


def test_events_of_all_pods_say_the_same(stories: tuple[Story, Story]) -> None:
    """Source: H053 to H055."""
    theirs, ours = stories
    reasons = {row[1] for rows in theirs.told.values() for row in rows}
    assert reasons == {"Scheduled", "FailedScheduling", "Preempted", "BindingConditionsPending"}
    assert len(theirs.told) == len(acts.PODS) + 6
    assert ours.told == theirs.told


def test_ours_has_all_label_values_and_buckets_that_kube_scheduler_has(stories: tuple[Story, Story]) -> None:
    theirs, ours = (series(story.page) for story in stories)
    missing = sorted(
        f"{name}{{{', '.join(f'{key}={value}' for key, value in sorted(labels))}}}"
        for name, every in theirs.items()
        for labels in every - ours.get(name, set())
    )
    assert len(theirs) > 60
    assert [line for line in missing if not any(re.match(pattern, line) for pattern in NOT_HERE)] == []


def series(page: str) -> dict[str, set[Labels]]:
    """The label values of each family, buckets among them; Go's runtime and the address of the API server left out."""
    found: dict[str, set[Labels]] = {}
    for name, part, labels in re.findall(r"(?m)^(?!go_)(\w+?)(_bucket|_count|_sum)?(?:\{(.*)\})? \S+$", page):
        if part in {"", "_bucket"}:
            values = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
            found.setdefault(name, set()).add(frozenset(pair for pair in values if pair[0] != "host"))
    return found
