"""Pending pods of a recorded cluster, and the errors for names without one."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.pending_pods import find_pods, list_pending_pods, nominate_pending_pods
from extender.analysis.recorded_cluster import Recording, load_cache, read_recording
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37, Release

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}, spec: {containers: [{name: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: api-1, namespace: shop}, spec: {containers: [{name: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: cron, namespace: a}, spec: {containers: [{name: a}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: cron, namespace: b}
spec: {containers: [{name: a}]}
status: {nominatedNodeName: n1}
---
{apiVersion: v1, kind: Pod, metadata: {name: placed}, spec: {nodeName: n1, containers: [{name: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: done}, spec: {containers: [{name: a}]}, status: {phase: Failed}}
---
apiVersion: v1
kind: Pod
metadata: {name: leaving, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {schedulerName: other, containers: [{name: a}]}
status: {nominatedNodeName: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: wait}], containers: [{name: a}]}
status: {nominatedNodeName: n1}
"""


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    return read_recording([str(path)])


def test_pending_pods_have_no_node_and_are_neither_finished_nor_terminating(recording: Recording) -> None:
    pods = list_pending_pods(load_cache(recording), ("default-scheduler",))
    assert [pod.key for pod in pods] == ["shop/web", "default/web", "shop/api-1", "a/cron", "b/cron", "default/gated"]


def test_pending_pods_are_selected_by_scheduler(recording: Recording) -> None:
    assert [pod.key for pod in list_pending_pods(load_cache(recording), ("other",))] == ["default/other"]


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["shop/web"], ["shop/web"]),
        (["web"], ["default/web"]),
        (["api-1"], ["shop/api-1"]),
        (["b/cron", "web", "default/web"], ["b/cron", "default/web"]),
    ],
    ids=[
        "namespace and name",
        "a name of the default namespace goes first",
        "a name that only one namespace has",
        "several, each once, in the order of the names",
    ],
)
def test_pods_are_found_by_name(recording: Recording, names: list[str], keys: list[str]) -> None:
    assert [pod.key for pod in find_pods(names, recording, ["default-scheduler"])] == keys


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop/wep", "Pod shop/wep: there is no such pod; did you mean shop/web?"),
        ("kube-system/web", "Pod kube-system/web: there is no such pod; did you mean shop/web, default/web?"),
        ("api-2", "Pod api-2: there is no such pod; did you mean shop/api-1?"),
        ("zzz", "Pod zzz: there is no such pod"),
        ("cron", "Pod cron: several pods have this name; want one of a/cron, b/cron"),
        ("done", "Pod default/done: has finished; its phase is Failed"),
        ("leaving", "Pod default/leaving: is being deleted"),
        (
            "other",
            'Pod default/other: waits for scheduler "other"; the current configuration is for default-scheduler; '
            'pass one for "other" with --config',
        ),
    ],
)
def test_a_name_that_cannot_be_explained_is_an_error(recording: Recording, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        find_pods([name], recording, ["default-scheduler"])
    assert [str(error).partition(": ")[2] for error in caught.value.errors] == [message]


@pytest.mark.parametrize(
    ("release", "nominated_pods"), [(RELEASE_1_36, ["b/cron"]), (RELEASE_1_37, ["b/cron", "default/gated"])]
)
def test_gated_pods_are_nominated_since_1_37_and_pods_of_other_schedulers_are_not(
    recording: Recording, release: Release, nominated_pods: list[str]
) -> None:
    """Source: pkg/scheduler/backend/queue/scheduling_queue.go, PriorityQueue.addPod (1.37)."""
    gates = FeatureGates(release=release)
    cache = load_cache(recording, gates)
    nominate_pending_pods(cache, wiring.build_setup(gates=gates).first_profile, wiring.make_runtime())
    nominated = {name: [pod.key for pod in pods] for name, pods in cache.snapshot().nominated_pods_by_node.items()}
    assert nominated == {"n1": nominated_pods}
