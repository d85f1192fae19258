"""Scenarios from the values of flags, and the files that they name."""

from pathlib import Path

import pytest
import typer

from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.scenario_input import ScenarioFlags, read_scenario
from extender.cli.recording_options import Cluster, InputOptions
from extender.planning.scenario import AddedNodes, Scale, Scenario
from tests.unit.planning.clusters import as_list, node, pod


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "c.json").write_text(as_list([node("n1")]))
    return read_cluster([str(tmp_path / "c.json")], InputOptions())


def test_no_flags_are_no_change(cluster: Cluster) -> None:
    assert read_scenario(ScenarioFlags(), cluster) == Scenario()


def test_each_flag_is_a_change(cluster: Cluster) -> None:
    flags = ScenarioFlags(drain=["a"], cordon=["b"], remove=["c"], lose=["z=1"], add=[2], like=["n1"], preempt=True)
    assert read_scenario(flags, cluster) == Scenario(
        drain=("a",), cordon=("b",), remove=("c",), lose=(("z", "1"),), add=(AddedNodes(2, "n1"),), preempt=True
    )
    scaled = read_scenario(ScenarioFlags(scale=["job/x=2"], namespace="shop"), cluster)
    assert scaled == Scenario(scale=(Scale("job", "shop", "x", 2),))


def test_new_pods_are_copies_with_names_and_uids_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(as_list([pod("a", on="n9", owner="")]))
    file = str(tmp_path / "p.json")
    two = read_scenario(ScenarioFlags(pods=[file], replicas=2), cluster).pods
    one = read_scenario(ScenarioFlags(pods=[file]), cluster).pods
    assert [(new.metadata.name, new.metadata.uid, new.spec.node_name) for new in two] == [
        ("a-0", "copy-of/default/a-0", ""),
        ("a-1", "copy-of/default/a-1", ""),
    ]
    assert [(new.metadata.name, new.metadata.uid) for new in one] == [("a", "copy-of/default/a-0")]


def test_too_many_new_pods_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(as_list([pod("a", owner=""), pod("b", owner="")]))
    with pytest.raises(typer.BadParameter) as caught:
        read_scenario(ScenarioFlags(pods=[str(tmp_path / "p.json")], replicas=1_000_000), cluster)
    assert caught.value.message == "more than 1000000 new pods"
