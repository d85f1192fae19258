"""Which pods leave a node, and which come back."""

import pytest

from extender.planning.departures import Departure, classify_departure, make_replacement
from tests.unit.planning.clusters import decode_pod, pod

MIRROR = {"kubernetes.io/config.mirror": "x"}
CASES = {
    "a pod of a ReplicaSet is replaced": (pod("a", on="n1"), Departure.REPLACED),
    "a pod without a controller is lost": (pod("a", on="n1", owner=""), Departure.LOST),
    "a DaemonSet's pod belongs to the node": (pod("a", on="n1", owner="DaemonSet"), Departure.DAEMON_OR_MIRROR),
    "a mirror pod belongs to the node": (pod("a", on="n1", owner="", annotations=MIRROR), Departure.DAEMON_OR_MIRROR),
    "a pod that a node owns is a mirror pod": (pod("a", on="n1", owner="Node"), Departure.DAEMON_OR_MIRROR),
}


@pytest.mark.parametrize(("body", "departure"), CASES.values(), ids=CASES.keys())
def test_the_rules_of_kubectl_drain(body: dict[str, object], departure: Departure) -> None:
    assert classify_departure(decode_pod(body)) is departure


def test_a_terminating_pod_has_its_replacement_already() -> None:
    body = pod("a", on="n1")
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert classify_departure(decode_pod(body)) is Departure.TERMINATING


def test_a_replacement_is_pending_and_has_its_own_uid() -> None:
    status = {"phase": "Running", "nominatedNodeName": "n9", "startTime": "2026-01-01T00:00:00Z"}
    old_pod = decode_pod(pod("a", on="n1", labels={"app": "x"}, status=status))
    new_pod = make_replacement(old_pod)
    assert (new_pod.key, new_pod.metadata.uid, new_pod.metadata.labels) == (
        "default/a",
        "replacement-of/uid-a",
        {"app": "x"},
    )
    assert (new_pod.spec.node_name, new_pod.status.phase, new_pod.status.nominated_node_name) == ("", "Pending", "")
    assert new_pod.metadata.controller == old_pod.metadata.controller
