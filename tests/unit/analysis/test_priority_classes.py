"""Manifests of pods and pod groups that name a PriorityClass which does not exist."""

import pytest

from extender.analysis.priority_classes import find_unknown_priority_classes
from extender.analysis.recorded_cluster import parse_recording

CLASS = b"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}\n---\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {priorityClassName: hihg, containers: [{name: app, image: web}]}
"""
ERROR = 'c.yaml: Pod shop/web: spec.priorityClassName: no PriorityClass with name hihg was found; did you mean "high"?'


def find_errors(pods: str) -> list[str]:
    recording = parse_recording(CLASS + pods.encode(), "c.yaml")
    return [str(error) for error in find_unknown_priority_classes(recording, recording)]


def test_each_unknown_class_is_one_error() -> None:
    assert find_errors(f"{POD}---\n{POD.replace('name: web,', 'name: api,')}") == [ERROR]


@pytest.mark.parametrize("kind", ["PodGroup", "CompositePodGroup"])
def test_pod_groups_are_checked_too(kind: str) -> None:
    head = POD.partition("spec:")[0].replace("v1", "scheduling.k8s.io/v1alpha3").replace("kind: Pod", f"kind: {kind}")
    group = f"{head}spec: {{priorityClassName: hihg, schedulingPolicy: {{basic: {{}}}}}}"
    assert find_errors(group) == [ERROR.replace("Pod shop/web", f"{kind} shop/web")]


@pytest.mark.parametrize(
    ("text", "replacement"),
    [
        ("hihg", "high"),
        ("hihg", "system-node-critical"),
        ("priorityClassName: hihg, ", ""),
        ("priorityClassName: hihg", "priorityClassName: hihg, priority: 7"),
        ("namespace: shop", "namespace: shop, uid: pod-of-an-api-server"),
    ],
)
def test_other_pods_are_accepted(text: str, replacement: str) -> None:
    assert find_errors(POD.replace(text, replacement)) == []


def test_nothing_is_known_without_recorded_classes() -> None:
    recording = parse_recording(POD.encode(), "pod.yaml")
    assert list(find_unknown_priority_classes(recording, recording)) == []
