"""Groups of the coscheduling plugin in recordings."""

import io

from extender.analysis.coscheduling_groups import (
    convert_coscheduling_groups,
    describe_ungated_members,
    describe_unused_groups,
)
from extender.analysis.recorded_cluster import Recording, parse_recording
from extender.analysis.recording_writer import write_recording
from extender.api.kinds.pod import Pod, PodSchedulingGroup, PodSpec
from extender.api.kinds.pod_group import CoschedulingPodGroup, PodGroup
from extender.config.feature_gates import FeatureGates

CLUSTER = b"""\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: default}
spec: {minMember: 2}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: train, namespace: default}
spec: {schedulingPolicy: {basic: {}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {priority: 5, containers: [{name: c, image: i}]}
"""
COSCHEDULING = FeatureGates().with_coscheduling()


def read() -> Recording:
    return parse_recording(CLUSTER, "cluster.yaml")


def test_its_groups_replace_other_groups_of_the_same_name() -> None:
    recording = convert_coscheduling_groups(read(), COSCHEDULING)
    (group,) = (obj for obj in recording.objects if isinstance(obj, PodGroup))
    gang = group.spec.scheduling_policy.gang
    assert gang is not None
    assert (gang.min_count, group.spec.priority) == (2, 5)
    (pod,) = (obj for obj in recording.objects if isinstance(obj, Pod))
    assert pod.spec.scheduling_group is not None
    assert pod.spec.scheduling_group.pod_group_name == "train"


def test_without_the_plugin_the_recording_stays_and_a_note_says_so() -> None:
    recording = read()
    assert convert_coscheduling_groups(recording, FeatureGates()) is recording
    assert describe_unused_groups(recording, COSCHEDULING) == ""
    assert describe_unused_groups(recording, FeatureGates()) == (
        "1 PodGroup of scheduling.x-k8s.io without effect; enable the plugin Coscheduling in a configuration and pass"
        " it with --config"
    )


def test_members_of_pod_groups_without_the_feature_gate_have_a_note() -> None:
    group = PodSchedulingGroup(pod_group_name="train")
    pods = [Pod(spec=PodSpec(scheduling_group=group)), Pod(spec=PodSpec(scheduling_group=group)), Pod()]
    assert describe_ungated_members(pods, FeatureGates()) == (
        "2 pods are members of pod groups, which have no effect here;"
        " pass --feature-gates GenericWorkload=true if their scheduler has it"
    )
    assert describe_ungated_members(pods[:1], FeatureGates()).startswith("1 pod is a member of pod groups, ")
    assert describe_ungated_members(pods[2:], FeatureGates()) == ""
    assert describe_ungated_members(pods, FeatureGates({"GenericWorkload": True})) == ""
    assert describe_ungated_members(pods, COSCHEDULING) == ""


def test_a_written_recording_has_the_groups_with_their_own_api_version() -> None:
    file = io.BytesIO()
    write_recording(read(), file, compress=False)
    recording = parse_recording(file.getvalue(), "written.json")
    assert [type(obj) for obj in recording.objects] == [CoschedulingPodGroup, PodGroup, Pod]
    assert {"CoschedulingPodGroup", "PodGroup"} <= recording.recorded_kinds
