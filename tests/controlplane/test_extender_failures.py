"""Our extender killed, stopped, slow or broken: pods wait, or are scheduled without it; none is bound twice."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.api_client import ApiClient, JsonObject, find_condition
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.extender_process import ExtenderProcess, grant_permissions, is_assigned
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.scheduler_processes import create_all, make_nodes, make_pods, wait_until_bound
from tests.controlplane.slow_proxy import SlowProxy
from tests.scheduling_history import find_violations

SHORT_BACKOFF = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
STOP_SECONDS = 30.0
"""Seconds in which unanswered connections time out and are opened again."""

IGNORABLE = pytest.mark.parametrize("ignorable", [True, False], ids=["ignorable", "not ignorable"])


class PodBatches:
    """Creates batches of pods and waits for their bindings."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self._count = 0

    def create(self, name: str) -> list[JsonObject]:
        """Create five pods."""
        self._count += 5
        return [self.api.create(pod) for pod in make_pods(name, 5)]

    def wait_until_all_bound(self) -> None:
        """Wait until all pods are bound."""
        wait_until_bound(self.api, self._count)

    def check_during_failure(self, batch: list[JsonObject], *, ignorable: bool) -> None:
        """Assert that pods are bound while an ignorable extender fails, and that they wait otherwise."""
        if ignorable:
            self.wait_until_all_bound()
            return
        for pod in batch:
            failed_pod = self.api.wait_for(
                pod, lambda pod_: bool(find_condition(pod_, "PodScheduled")), "a failed attempt"
            )
            assert not is_assigned(failed_pod)
            assert find_condition(failed_pod, "PodScheduled")["reason"] == "SchedulerError"


@pytest.fixture
def recorder(control_plane: ControlPlane, api: ApiClient) -> Iterator[HistoryRecorder]:
    """Create ten nodes; check after the test that every pod is bound once and that no node is overcommitted."""
    grant_permissions(api)
    recorder = HistoryRecorder(control_plane)
    create_all(api, make_nodes(10))
    yield recorder
    assert find_violations(recorder.history()) == []


def start_kube_scheduler(plane: ControlPlane, entry: dict[str, Any]) -> None:
    plane.start_kube_scheduler({"extenders": [entry], **SHORT_BACKOFF})


@IGNORABLE
def test_pods_are_scheduled_after_the_extender_was_killed_or_stopped(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder, ignorable: bool
) -> None:
    extender, batches = ExtenderProcess(control_plane), PodBatches(api)
    start_kube_scheduler(
        control_plane, extender.configuration_entry(bindVerb="bind", ignorable=ignorable, httpTimeout="1s")
    )
    batches.create("first")
    batches.wait_until_all_bound()

    extender.process.signal(signal.SIGKILL)
    batches.check_during_failure(batches.create("gone"), ignorable=ignorable)
    extender.restart()
    batches.wait_until_all_bound()

    extender.process.signal(signal.SIGSTOP)
    batches.check_during_failure(batches.create("stopped"), ignorable=ignorable)
    extender.process.pause(STOP_SECONDS)
    extender.process.signal(signal.SIGCONT)
    batches.create("last")
    batches.wait_until_all_bound()


@IGNORABLE
def test_pods_are_scheduled_after_late_responses_and_status_500(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder, ignorable: bool
) -> None:
    with SlowProxy(ExtenderProcess(control_plane)) as proxy:
        batches = PodBatches(api)
        http_fields = {"enableHTTPS": False, "tlsConfig": None, "urlPrefix": proxy.url, "httpTimeout": "1s"}
        start_kube_scheduler(
            control_plane, proxy.extender.configuration_entry(bindVerb="bind", ignorable=ignorable, **http_fields)
        )
        batches.create("first")
        batches.wait_until_all_bound()

        proxy.broken = True
        batches.check_during_failure(batches.create("broken"), ignorable=ignorable)
        proxy.broken = False
        batches.wait_until_all_bound()

        proxy.pause()
        batches.check_during_failure(batches.create("late"), ignorable=ignorable)
        proxy.resume()  # also the delayed bind requests
        batches.create("last")
        batches.wait_until_all_bound()
