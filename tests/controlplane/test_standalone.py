"""Our own scheduler on a real API server, with no rights but those of kube-scheduler's own role."""

from tests.controlplane import mixed
from tests.controlplane.agreement import decided
from tests.controlplane.api import Api, condition, key
from tests.controlplane.candidates import extender, settings
from tests.controlplane.plane import ControlPlane
from tests.controlplane.recording import Recording
from tests.history import bound_twice, overfull, placements


def test_unlike_pods_are_placed_or_told_why_not(control_plane: ControlPlane, api: Api) -> None:
    recording = Recording(control_plane)
    for thing in [*mixed.surroundings(), *mixed.nodes()]:
        api.create(thing)
    extender(control_plane, settings(control_plane))
    created = {key(api.create(manifest)) for manifest in mixed.pods(seed=3)}

    things = api.wait_until("Pod", lambda pods: all(decided(pods[name]) for name in created), "all decisions")

    history = recording.history()
    placed = [pod for pod in things.values() if pod["spec"].get("nodeName")]
    refused = [pod for pod in things.values() if not pod["spec"].get("nodeName")]
    assert len(placed) == len(placements(history)) >= 100
    assert refused
    assert (bound_twice(history), overfull(history)) == ([], [])
    reasons = {condition(pod, "PodScheduled")["reason"] for pod in refused}
    assert reasons <= {"Unschedulable", "SchedulingGated"}
