"""Table rows of each kind; `tests/controlplane` compares the columns with the real server's."""

from typing import Any

import pytest

from extender.fake_apiserver.endpoints.printer_cells import format_human_duration
from extender.fake_apiserver.endpoints.printers import print_table
from extender.fake_apiserver.registry.resources import RESOURCES_BY_KIND
from tests.unit.fake_apiserver.builders import START, Object

DURATIONS = [
    (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (600, "10m"), (10_799, "179m"),
    (10_800, "3h"), (10_860, "3h1m"), (28_800, "8h"), (172_799, "47h"), (172_800, "2d"), (176_400, "2d1h"),
    (691_200, "8d"), (63_072_000, "2y"), (63_158_400, "2y1d"), (252_288_000, "8y"),
]  # fmt: skip

GATED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], "phase": "Pending"}
ROLES = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": ""}
EVENT = {
    "type": "Normal",
    "reason": "Scheduled",
    "message": "hello\n",
    "involvedObject": {"kind": "Pod", "name": "web"},
}

ROWS: dict[str, tuple[str, Object, list[Any]]] = {
    "a gated pod": ("Pod", {"spec": {}, "status": GATED}, ["x", "0/0", "SchedulingGated", "0"]),
    "a finished pod": ("Pod", {"status": {"phase": "Succeeded"}}, ["x", "0/0", "Completed", "0"]),
    "a pod that ends": (
        "Pod",
        {"metadata": {"name": "x", "deletionTimestamp": "2023-11-14T22:13:50Z"}, "status": {"phase": "Running"}},
        ["x", "0/0", "Terminating"],
    ),
    "a cordoned node with roles": (
        "Node",
        {
            "metadata": {"name": "x", "labels": ROLES},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        },
        ["x", "NotReady,SchedulingDisabled", "control-plane,worker"],
    ),
    "an event seen often": (
        "Event",
        {**EVENT, "count": 3, "firstTimestamp": "2023-11-14T22:08:20Z", "lastTimestamp": "2023-11-14T22:13:10Z"},
        ["10s (x3 over 5m)", "Normal", "Scheduled", "pod/web", "", "", "hello", "5m", 3, "x"],
    ),
    "an event with a series": (
        "Event",
        {
            **EVENT,
            "eventTime": "2023-11-14T22:12:20.000000Z",
            "series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:15.000000Z"},
            "reportingComponent": "sched",
        },
        ["5s (x2 over 60s)", "Normal", "Scheduled", "pod/web", "", "sched", "hello", "60s", 2, "x"],
    ),
    "a service": (
        "Service",
        {
            "spec": {
                "type": "NodePort",
                "clusterIP": "10.0.0.1",
                "ports": [{"port": 80, "nodePort": 30080}, {"port": 81}],
            }
        },
        ["x", "NodePort", "10.0.0.1", "<none>", "80:30080/TCP,81/TCP"],
    ),
    "a bound volume": (
        "PersistentVolume",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "a", "name": "b"},
            }
        },
        ["x", "1Gi", "RWO,ROX", "", "", "a/b"],
    ),
    "a reserved claim": (
        "ResourceClaim",
        {"status": {"allocation": {}, "reservedFor": [{"uid": "u"}]}},
        ["x", "allocated,reserved"],
    ),
    "a pending claim": ("ResourceClaim", {}, ["x", "pending"]),
    "the default storage class": (
        "StorageClass",
        {"metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
        ["x (default)"],
    ),
    "a stateful set": ("StatefulSet", {"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}, ["x", "1/3"]),
    "a disruption budget": (
        "PodDisruptionBudget",
        {"spec": {"maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 2}},
        ["x", "N/A", "30%", 2],
    ),
    "a lease": ("Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me"]),
}


@pytest.mark.parametrize(("seconds", "expected"), DURATIONS, ids=[text for _, text in DURATIONS])
def test_a_duration_is_formatted(seconds: float, expected: str) -> None:
    assert format_human_duration(seconds) == expected


@pytest.mark.parametrize(("kind", "content", "expected"), ROWS.values(), ids=ROWS)
def test_a_row_has_the_cells(kind: str, content: Object, expected: list[Any]) -> None:
    resource = next(candidate for (_, name), candidate in RESOURCES_BY_KIND.items() if name == kind)
    table = print_table(resource, [{"metadata": {"name": "x"}, **content}], START, {})
    assert table["rows"][0]["cells"][: len(expected)] == expected
