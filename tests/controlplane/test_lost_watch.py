"""A scheduler whose connection breaks while the store forgets what happened meanwhile (410), again and again."""

import signal

from tests.controlplane.api import Api
from tests.controlplane.candidates import Line, create, extender, pods, settings, until_bound
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import Recording
from tests.history import placements, wrong

ROUNDS, CHANGED = 3, 50
FULL = 760
"""Pods of 100m that fit on the nodes, leaving one place on each."""

GROWTH = 6 * 2**20
"""Bytes that memory may differ between rounds that do the same."""


def test_what_happened_while_the_watch_was_broken_and_is_forgotten_is_learnt_again(
    control_plane: ControlPlane, api: Api, recording: Recording
) -> None:
    """Pods that were deleted meanwhile free their room, though nobody can be told of their deletion (fault 3)."""
    line = Line(control_plane)
    scheduler = extender(control_plane, settings(control_plane, server=line.url))
    create(api, pods("old", FULL))
    until_bound(api, FULL)
    sizes = []
    for number in range(ROUNDS):
        line.cut()
        for old in pods("old", FULL)[number * CHANGED : (number + 1) * CHANGED]:
            api.delete({**old, "metadata": {**old["metadata"], "namespace": "default"}})
        create(api, pods(f"new-{number}", CHANGED))
        control_plane.stop_api_server(signal.SIGKILL)
        recording.compact()
        control_plane.start_api_server()
        line.mend()
        until_bound(api, FULL)
        sizes.append(scheduler.resident())

    history = recording.history()
    assert wrong(history) == []
    assert len(placements(history)) == FULL + ROUNDS * CHANGED
    assert scheduler.printed().count("too old resource version") >= ROUNDS
    assert sizes[-1] - sizes[0] <= GROWTH, sizes
