"""The pods of a question: replicated_pods and replicas."""

from pathlib import Path

from extender.api.kinds.workload import ReplicaSet
from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.cluster_input import read_replicated_pods
from extender.cli.recording_options import InputOptions
from tests.unit.planning.clusters import as_list, node, pod


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
