"""Labels and pod groups of the coscheduling plugin as pod groups of scheduling.k8s.io."""

import pytest

from extender.api.coscheduling import POD_GROUP_LABEL, make_pod_group, set_scheduling_group
from extender.api.kinds.pod import PodSchedulingGroup
from tests.build import make_object, make_pod


@pytest.mark.parametrize(
    ("label", "native_group", "expected"),
    [("train", None, "train"), ("", None, None), (None, None, None), (None, "ring", None), ("train", "ring", "train")],
)
def test_the_label_alone_names_the_group_of_a_pod(
    label: str | None, native_group: str | None, expected: str | None
) -> None:
    labels = {} if label is None else {POD_GROUP_LABEL: label}
    spec = {} if native_group is None else {"schedulingGroup": {"podGroupName": native_group}}
    pod = set_scheduling_group(make_pod("a", labels=labels, spec=spec))
    assert pod.spec.scheduling_group == (None if expected is None else PodSchedulingGroup(pod_group_name=expected))
    assert set_scheduling_group(pod) is pod


@pytest.mark.parametrize(("spec", "min_count"), [({"minMember": 4}, 4), ({"minMember": 0}, 1), ({}, 1)])
def test_min_member_is_the_min_count_of_a_gang(spec: dict[str, int], min_count: int) -> None:
    raw = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u1"},
        "spec": {**spec, "scheduleTimeoutSeconds": 10, "minResources": {"cpu": "4"}},
        "status": {"phase": "Pending"},
    }
    group = make_pod_group(make_object(raw), 7)
    gang = group.spec.scheduling_policy.gang
    assert gang is not None
    assert (group.metadata.uid, gang.min_count, group.spec.priority) == ("u1", min_count, 7)
    assert not group.spec.is_disrupted_as_a_whole
