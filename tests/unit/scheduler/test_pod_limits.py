"""Pods that are so large that an attempt would keep the scheduler busy for seconds."""

from typing import Any

import pytest

from extender.api.pod_limits import MAX_LABELS, MAX_RESOURCE_NAMES, MAX_RULE_FIELDS, MAX_VOLUMES
from tests.build import make_node, make_pod
from tests.unit.scheduler.builders import SchedulerHarness

RULES = (
    "spec: nodeSelector, affinity, topologySpreadConstraints and tolerations have more than 1000 fields or 262144 bytes"
)


def make_large_pod(kind: str, number: int) -> Any:
    keys = [f"example.com/{index}" for index in range(number)]
    match kind:
        case "labels":
            return make_pod("large", labels=dict.fromkeys(keys, "x"))
        case "volumes":
            return make_pod(
                "large", spec={"volumes": [{"name": f"v{index}", "emptyDir": {}} for index in range(number)]}
            )
        case "resources":
            return make_pod("large", requests=dict.fromkeys(keys, "0"))
        case _:
            return make_pod("large", spec={"tolerations": [{"key": key} for key in keys]})


@pytest.mark.parametrize(
    ("kind", "limit", "message"),
    [
        ("labels", MAX_LABELS, "metadata.labels: more than 1000"),
        ("volumes", MAX_VOLUMES, "spec.volumes: more than 1000"),
        ("resources", MAX_RESOURCE_NAMES, "spec.resources and those of containers: more than 256"),
        ("rules", MAX_RULE_FIELDS, RULES),
    ],
)
def test_a_pod_above_a_limit_is_not_scheduled(kind: str, limit: int, message: str) -> None:
    harness = SchedulerHarness(make_node("n1"))
    large_pod, pod = make_large_pod(kind, limit + 1), make_pod("small")
    harness.create(large_pod, pod)
    harness.run()
    assert (harness.node_of(large_pod), harness.node_of(pod)) == ("", "n1")
    note = f"the pod is too large to schedule: {message}"
    assert ("default/large", "FailedScheduling", note) in harness.events.recorded


@pytest.mark.parametrize("kind", ["labels", "volumes", "resources"])
def test_a_pod_at_a_limit_is_scheduled(kind: str) -> None:
    limits = {"labels": MAX_LABELS, "volumes": MAX_VOLUMES, "resources": MAX_RESOURCE_NAMES}
    harness = SchedulerHarness(make_node("n1"))
    pod = make_large_pod(kind, limits[kind])
    harness.create(pod)
    harness.run()
    assert harness.node_of(pod) == "n1"
