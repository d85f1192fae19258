"""A scheduler whose connection breaks during a compaction, repeatedly: its watch ends with status 410."""

import signal

from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.history_recorder import HistoryRecorder
from tests.controlplane.scheduler_processes import (
    ApiServerLink,
    create_all,
    make_configuration,
    make_pods,
    start_scheduler,
    wait_until_bound,
)
from tests.scheduling_history import find_assignments, find_violations

ROUNDS, REPLACED_PODS = 3, 50
POD_COUNT = 760
"""Pods of 100m that fill all nodes but for one pod each."""

MAX_MEMORY_GROWTH = 6 * 2**20
"""Bytes by which the memory may grow between equal rounds."""


def test_changes_during_a_broken_watch_and_a_compaction_are_detected_by_a_list(
    control_plane: ControlPlane, api: ApiClient, recorder: HistoryRecorder
) -> None:
    """Pods that were deleted in the meantime free their nodes, although there is no event of their deletion."""
    link = ApiServerLink(control_plane)
    configuration = make_configuration(control_plane, server=link.url)
    scheduler = start_scheduler(control_plane, configuration, "--secure-port=0", "-v=4")
    create_all(api, make_pods("old", POD_COUNT))
    wait_until_bound(api, POD_COUNT)
    sizes = []
    for round_number in range(ROUNDS):
        link.stall()
        for old in make_pods("old", POD_COUNT)[round_number * REPLACED_PODS : (round_number + 1) * REPLACED_PODS]:
            api.delete({**old, "metadata": {**old["metadata"], "namespace": "default"}})
        create_all(api, make_pods(f"new-{round_number}", REPLACED_PODS))
        control_plane.stop_api_server(signal.SIGKILL)
        recorder.compact()
        control_plane.start_api_server()
        link.restore()
        wait_until_bound(api, POD_COUNT)
        sizes.append(scheduler.resident_bytes())

    history = recorder.history()
    assert find_violations(history) == []
    assert len(find_assignments(history)) == POD_COUNT + ROUNDS * REPLACED_PODS
    assert scheduler.output().count('resource="pods" err="too old resource version') >= ROUNDS
    assert sizes[-1] - sizes[0] <= MAX_MEMORY_GROWTH, sizes
