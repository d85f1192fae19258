"""Who is kin to whom: pods whose specs differ in nothing but amounts of resources."""

from typing import Any

import pytest

from extender.objects.pod import Pod
from tests.build import a_cluster, a_pod


def asking(requests: dict[str, str], **more: Any) -> Pod:
    """A pod with one container that asks for *requests*."""
    container = {"name": "app", "image": "app", "resources": {"requests": requests, "limits": requests}}
    return a_pod("other", spec={"containers": [container], **more})


FIRST = asking({"cpu": "1", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("other", "kin"),
    [
        pytest.param(FIRST, True, id="the same"),
        pytest.param(asking({"cpu": "2", "memory": "4Gi"}), True, id="other amounts"),
        pytest.param(asking({"memory": "4Gi", "cpu": "2"}), True, id="other amounts in another order"),
        pytest.param(asking({"cpu": "1"}), False, id="a resource less"),
        pytest.param(asking({"cpu": "1", "example.com/gpu": "1"}), False, id="another resource"),
        pytest.param(asking({"cpu": "1", "memory": "1Gi"}, nodeSelector={"zone": "a"}), False, id="another selector"),
        pytest.param(asking({"cpu": "1", "memory": "1Gi"}, nodeName="n1"), True, id="on a node"),
        pytest.param(asking({"cpu": "1", "memory": "1Gi"}, overhead={"cpu": "1"}), False, id="with overhead"),
        pytest.param(
            asking({"cpu": "1", "memory": "1Gi"}, resources={"requests": {"cpu": "1"}}), False, id="with a sum"
        ),
    ],
)
def test_kin_differ_in_amounts_of_resources_only(other: Pod, kin: bool) -> None:
    cluster = a_cluster().snapshot()

    assert (cluster.query(FIRST).shape.kin is cluster.query(other).shape.kin) is kin


def test_overhead_and_requests_of_the_whole_pod_are_amounts_too() -> None:
    cluster = a_cluster().snapshot()
    one, other = (
        cluster.query(asking({"cpu": "1"}, overhead={"cpu": amount}, resources={"requests": {"cpu": amount}}))
        for amount in ("1", "2")
    )

    assert one.shape is not other.shape
    assert one.shape.kin is other.shape.kin


def test_labels_owners_and_namespaces_do_not_count() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}
    other = a_pod("one", namespace="team", labels={"app": "job"}, metadata={"ownerReferences": [owner]})
    cluster = a_cluster().snapshot()

    assert cluster.query(a_pod()).shape.kin is cluster.query(other).shape.kin
    assert cluster.query(a_pod()).shape is not cluster.query(other).shape
