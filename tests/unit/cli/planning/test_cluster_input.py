"""The pods of a question: replicated_pods and replicas."""

from pathlib import Path

from extender.api.kinds.pod_group import PodGroup
from extender.api.kinds.workload import ReplicaSet
from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.cluster_input import read_replicated_pods
from extender.cli.recording_options import InputOptions
from tests.unit.planning.clusters import as_list, node, pod

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 9,
    "globalDefault": True,
}
GROUP = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {}}


def test_pods_without_a_controller_are_shapes_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(as_list([node("n1")]))
    (tmp_path / "p.json").write_text(as_list([pod("a", owner=""), pod("b", owner=""), pod("c"), pod("d")]))
    cluster = read_cluster([str(tmp_path / "c.json")], InputOptions())
    replicated_pods = read_replicated_pods([str(tmp_path / "p.json")], cluster)
    assert [(replicated_pod.pod.metadata.name, replicated_pod.replicas) for replicated_pod in replicated_pods] == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
    ]
    assert list(cluster.cache.snapshot().names) == ["n1"]


def test_a_workload_is_one_shape_and_its_own_objects_join_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(as_list([node("n1")]))
    (tmp_path / "p.yaml").write_text(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, "
        "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, "
        "spec: {containers: [{name: a, image: i}]}}}}"
    )
    cluster = read_cluster([str(tmp_path / "c.json")], InputOptions())
    (replicated_pod,) = read_replicated_pods([str(tmp_path / "p.yaml")], cluster)
    assert (replicated_pod.replicas, replicated_pod.pod.metadata.labels["app"]) == (3, "web")
    (replica_set,) = cluster.cache.snapshot().objects(ReplicaSet).values()
    assert replica_set.metadata.name == replicated_pod.pod.metadata.owner_references[0].name
    assert dict(cluster.cache.pending_pods) == {}


def test_new_pods_and_their_group_have_the_priority_of_the_cluster_s_global_default(tmp_path: Path) -> None:
    """kube-scheduler rejects a pod whose priority is not that of its group."""
    (tmp_path / "c.json").write_text(as_list([node("n1"), URGENT]))
    member = pod("a", owner="", schedulingGroup={"podGroupName": "g"})
    (tmp_path / "p.json").write_text(as_list([GROUP, member]))
    cluster = read_cluster([str(tmp_path / "c.json")], InputOptions())
    (replicated_pod,) = read_replicated_pods([str(tmp_path / "p.json")], cluster)
    (group,) = cluster.cache.snapshot().objects(PodGroup).values()
    assert (replicated_pod.pod.spec.priority, group.spec.priority) == (9, 9)


def test_the_pods_and_groups_of_a_cluster_in_a_file_have_the_priority_of_its_global_default(tmp_path: Path) -> None:
    member = pod("a", owner="", schedulingGroup={"podGroupName": "g"})
    (tmp_path / "c.json").write_text(as_list([node("n1"), URGENT, GROUP, member]))
    snapshot = read_cluster([str(tmp_path / "c.json")], InputOptions()).cache.snapshot()
    (group,) = snapshot.objects(PodGroup).values()
    assert group.spec.priority == 9
