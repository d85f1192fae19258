"""The API for notebooks gives the answers of the commands, and leaves the cluster as it was."""

from pathlib import Path

import pytest

from extender.notebook import InputError, read_cluster

DEMO = str(Path(__file__).parents[2] / "docs" / "examples" / "demo" / "cluster.yaml")


def test_a_pod_is_explained() -> None:
    answer = read_cluster(DEMO).explain("shop/frontend-5d8c-k7wzd")
    assert [answer["schemaVersion"], answer["kind"], list(answer["pods"])] == [
        "1.0",
        "Explanation",
        ["shop/frontend-5d8c-k7wzd"],
    ]
    message = answer["pods"]["shop/frontend-5d8c-k7wzd"]["message"]
    assert message.startswith("0/12 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu,")


def test_all_pending_pods_are_explained() -> None:
    assert len(read_cluster(DEMO).explain()["pods"]) == 8


def test_a_simulation_leaves_the_cluster_as_it_was() -> None:
    cluster = read_cluster(DEMO)
    answers = [cluster.simulate(seed=1), cluster.simulate(seed=1)]
    assert answers[0] == answers[1]
    assert answers[0]["kind"] == "Simulation"
    placed = {placement["pod"]: placement["node"] for placement in answers[0]["placements"] if placement["node"]}
    assert placed == {"shop/api-7f4b-g3ypl": "general-a3", "ml/trainer-2": "gpu-b1"}


def test_a_configuration_is_used_and_a_wrong_pod_is_named(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: '*'}]}}}]\n"
    )
    cluster = read_cluster(DEMO, config=str(config))
    assert len(cluster.explain("batch/month-end")["pods"]["batch/month-end"]["feasible"]) == 12
    with pytest.raises(InputError) as caught:
        cluster.explain("shop/nobody")
    assert str(caught.value).endswith("Pod shop/nobody: there is no such pod")


def test_files_may_be_paths(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert len(read_cluster(Path(DEMO), config=config).explain()["pods"]) == 8


def test_a_cluster_without_files_is_an_error_and_not_empty() -> None:
    with pytest.raises(InputError) as caught:
        read_cluster()
    assert str(caught.value) == "read_cluster: names no file; extender record -o cluster.json.gz writes one"
