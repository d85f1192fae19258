"""Groups of pending pods with the same explanation."""

from dataclasses import replace
from typing import Any

from extender.analysis.alike_pods import group_alike_pods
from extender.analysis.recorded_cluster import parse_recording
from extender.api.codec import from_builtins
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config import load
from tests.explain import explain_pods

SETUP = wiring.build_setup()
GPU_SHARE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GpuShare"}]}}}],
}
GPU_MILLI = {"a": "500", "b": "1000", "c": "500"}
CONTAINERS = [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]


def make_pod(name: str, spec: dict[str, Any] | None = None, status: Any = None, **metadata: Any) -> Pod:
    values = {
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"schedulerName": "default-scheduler", "containers": CONTAINERS, **(spec or {})},
        "status": status or {},
    }
    return from_builtins(values, Pod)


def group(*pods: Pod) -> list[list[str]]:
    groups = group_alike_pods(pods, Cache().make_pod_info, SETUP.profiles)
    return [[pod.metadata.name for pod in alike_pods] for alike_pods in groups]


def test_pods_that_differ_only_in_name_and_annotations_are_alike() -> None:
    assert group(make_pod("a"), make_pod("b", annotations={"x": "1"}), make_pod("c", uid="7")) == [["a", "b", "c"]]


def test_pods_of_other_namespaces_labels_or_specs_are_not_alike() -> None:
    assert group(
        make_pod("a"),
        make_pod("b", namespace="other"),
        make_pod("c", labels={"app": "web"}),
        make_pod("d", {"nodeSelector": {"zone": "a"}}),
        make_pod("e", {"priority": 7}),
        make_pod("f"),
    ) == [["a", "f"], ["b"], ["c"], ["d"], ["e"]]


def test_a_pod_with_objects_or_a_nomination_of_its_own_is_alone() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    volumes = {"volumes": [{"name": "scratch", "ephemeral": {}}]}
    for spec, status in ((claims, {}), (volumes, {}), ({}, {"nominatedNodeName": "n1"})):
        assert group(make_pod("a", spec, status), make_pod("b", spec, status)) == [["a"], ["b"]]


class _AnnotationPlugin:
    name = "AnnotationPlugin"


def test_with_a_plugin_of_a_third_party_the_annotations_must_be_equal() -> None:
    profile = SETUP.first_profile
    plugins = {**profile.plugins, "AnnotationPlugin": _AnnotationPlugin()}
    profiles = {"default-scheduler": replace(profile, plugins=plugins)}
    pods = [make_pod("a", annotations={"x": "1"}), make_pod("b", annotations={"x": "2"}), make_pod("c")]
    groups = group_alike_pods([*pods, make_pod("d", annotations={"x": "1"})], Cache().make_pod_info, profiles)
    assert [[pod.metadata.name for pod in alike_pods] for alike_pods in groups] == [["a", "d"], ["b"], ["c"]]


def test_with_gpu_share_the_annotations_which_request_gpus_must_be_equal() -> None:
    setup = wiring.build_setup(load.from_builtins(GPU_SHARE, "test"))
    pods = [make_pod(name, annotations={"alibabacloud.com/gpu-milli": milli}) for name, milli in GPU_MILLI.items()]
    groups = group_alike_pods(pods, Cache().make_pod_info, setup.profiles)
    assert [[pod.metadata.name for pod in alike_pods] for alike_pods in groups] == [["a", "c"], ["b"]]


def test_pods_like_another_share_its_report() -> None:
    pods = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{index}}}\nspec: {{nodeSelector: {{zone: a}}}}\n"
        for index in range(5)
    )
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {pods: 9}}\n"
    recording = parse_recording((node + pods).encode(), "c.yaml")
    (report,) = explain_pods(recording, [], SETUP.profiles, SETUP.profiles, wiring.make_runtime())
    assert report.alike_pods == ("default/p1", "default/p2", "default/p3", "default/p4")
    first_line = report.to_text().partition("\n")[0]
    assert first_line == "Pod default/p0 and 4 pods like this: default/p1, default/p2 and 2 more"
    named_reports = explain_pods(recording, ["p1", "p3"], SETUP.profiles, SETUP.profiles, wiring.make_runtime())
    assert [named_report.explanation.pod.key for named_report in named_reports] == ["default/p1", "default/p3"]
