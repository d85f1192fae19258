"""Pods whose specs differ only in amounts of resources have the same spec class."""

from typing import Any

import pytest

from extender.api.kinds.pod import Pod
from tests.build import make_cluster, make_pod


def make_job(requests: dict[str, str], **more: Any) -> Pod:
    """Make a pod with one container that requests *requests*."""
    container = {"name": "app", "image": "app", "resources": {"requests": requests, "limits": requests}}
    return make_pod("other", spec={"containers": [container], **more})


FIRST = make_job({"cpu": "1", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(FIRST, True, id="the same"),
        pytest.param(make_job({"cpu": "2", "memory": "4Gi"}), True, id="other amounts"),
        pytest.param(make_job({"memory": "4Gi", "cpu": "2"}), True, id="other amounts in another order"),
        pytest.param(make_job({"cpu": "1"}), False, id="one resource fewer"),
        pytest.param(make_job({"cpu": "1", "example.com/gpu": "1"}), False, id="another resource"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, nodeSelector={"zone": "a"}), False, id="another selector"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, nodeName="n1"), True, id="on a node"),
        pytest.param(make_job({"cpu": "1", "memory": "1Gi"}, overhead={"cpu": "1"}), False, id="with overhead"),
        pytest.param(
            make_job({"cpu": "1", "memory": "1Gi"}, resources={"requests": {"cpu": "1"}}),
            False,
            id="with pod-level requests",
        ),
    ],
)
def test_specs_of_one_class_differ_only_in_amounts_of_resources(other: Pod, is_same: bool) -> None:
    snapshot = make_cluster().snapshot()

    assert (
        snapshot.make_pod_info(FIRST).signature.spec_class is snapshot.make_pod_info(other).signature.spec_class
    ) is is_same


def test_amounts_of_overhead_and_pod_level_requests_do_not_count() -> None:
    snapshot = make_cluster().snapshot()
    one, other = (
        snapshot.make_pod_info(
            make_job({"cpu": "1"}, overhead={"cpu": amount}, resources={"requests": {"cpu": amount}})
        )
        for amount in ("1", "2")
    )

    assert one.signature is not other.signature
    assert one.signature.spec_class is other.signature.spec_class


def test_labels_owners_and_namespaces_do_not_count() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}
    other = make_pod("one", namespace="team", labels={"app": "job"}, metadata={"ownerReferences": [owner]})
    snapshot = make_cluster().snapshot()

    assert snapshot.make_pod_info(make_pod()).signature.spec_class is snapshot.make_pod_info(other).signature.spec_class
    assert snapshot.make_pod_info(make_pod()).signature is not snapshot.make_pod_info(other).signature
