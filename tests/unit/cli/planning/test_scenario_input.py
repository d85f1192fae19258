"""Scenarios from the values of flags, and the files that they name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from extender.api.kinds.node import Taint
from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.scenario_input import (
    ScenarioFlags,
    parse_added_nodes,
    parse_label_changes,
    parse_lost_labels,
    parse_scales,
    parse_taint_changes,
    read_scenario,
)
from extender.cli.recording_options import Cluster, InputOptions
from extender.planning.scenario import AddedNodes, LabelChange, Scale, Scenario, TaintChange
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


def test_valid_values() -> None:
    assert parse_lost_labels(["zone=a", "empty="]) == (("zone", "a"), ("empty", ""))
    assert parse_added_nodes([2, 1], ["n1", "n2"]) == (AddedNodes(2, "n1"), AddedNodes(1, "n2"))
    assert parse_taint_changes(["n1=k=v:NoSchedule", "n1=k:NoExecute", "n1=k:NoExecute-", "n1=k-"]) == (
        TaintChange("n1", Taint(key="k", value="v", effect="NoSchedule")),
        TaintChange("n1", Taint(key="k", effect="NoExecute")),
        TaintChange("n1", Taint(key="k", effect="NoExecute"), remove=True),
        TaintChange("n1", Taint(key="k"), remove=True),
    )
    assert parse_label_changes(["n1=a=b", "n1=a=", "n1=a-", "n1=!!-"]) == (
        LabelChange("n1", "a", "b"),
        LabelChange("n1", "a", ""),
        LabelChange("n1", "a", None),
        LabelChange("n1", "!!", None),
    )
    assert parse_scales(["deployment.apps/web=30", "sts/db=0"], "shop") == (
        Scale("deployment", "shop", "web", 30),
        Scale("statefulset", "shop", "db", 0),
    )


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "a label without a value": (
        lambda: parse_lost_labels(["zone"]),
        "'zone'; want KEY=VALUE, such as topology.kubernetes.io/zone=a",
    ),
    "no node to copy": (
        lambda: parse_added_nodes([3], []),
        "1 times --add and 0 times --like; each --add N needs one --like NODE",
    ),
    "a node to copy without a number": (
        lambda: parse_added_nodes([], ["n1"]),
        "0 times --add and 1 times --like; each --add N needs one --like NODE",
    ),
    "no nodes": (lambda: parse_added_nodes([0], ["n1"]), "'0'; want 1 to 100000 nodes"),
    "a taint with an unknown effect": (
        lambda: parse_taint_changes(["n1=k:Never"]),
        "'n1=k:Never'; want NODE=KEY[=VALUE]:EFFECT with an effect of NoSchedule, PreferNoSchedule, NoExecute, "
        "or NODE=KEY[:EFFECT]- to remove a taint",
    ),
    "a taint without an effect": (
        lambda: parse_taint_changes(["n1=k"]),
        "'n1=k'; want NODE=KEY[=VALUE]:EFFECT with an effect of NoSchedule, PreferNoSchedule, NoExecute, "
        "or NODE=KEY[:EFFECT]- to remove a taint",
    ),
    "a label without a node": (
        lambda: parse_label_changes(["n1=a"]),
        "'n1=a'; want NODE=KEY=VALUE, or NODE=KEY- to remove the label",
    ),
    "a workload that cannot be scaled": (
        lambda: parse_scales(["daemonset/a=1"], "default"),
        "'daemonset/a=1'; want KIND/NAME=N with a kind of deployment, replicaset, statefulset, "
        "replicationcontroller, job",
    ),
    "a negative number": (
        lambda: parse_scales(["deployment/a=-1"], "default"),
        "'deployment/a=-1'; want KIND/NAME=N with a kind of deployment, replicaset, statefulset, "
        "replicationcontroller, job",
    ),
    "too many pods": (
        lambda: parse_scales(["deployment/a=1000001"], "default"),
        "'deployment/a=1000001'; want at most 1000000 pods of all workloads",
    ),
    "too many pods of all workloads": (
        lambda: parse_scales(["deployment/a=500000", "job/b=500001"], "default"),
        "'job/b=500001'; want at most 1000000 pods of all workloads",
    ),
}


SYNTAX_ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "a label with an invalid value": (
        lambda: parse_label_changes(["n1=a=!!"]),
        "value '!!': a valid label must be an empty string or consist of alphanumeric characters, ",
    ),
    "a label with a value that ends in a hyphen": (
        lambda: parse_label_changes(["n1=a=b-"]),
        "value 'b-': a valid label must be an empty string or consist of alphanumeric characters, ",
    ),
    "a label with an invalid key": (
        lambda: parse_label_changes(["n1=!!=x"]),
        "key '!!': name part must consist of alphanumeric characters, ",
    ),
    "a taint with an invalid key": (
        lambda: parse_taint_changes(["n1=/k:NoSchedule"]),
        "key '/k': prefix part must be non-empty",
    ),
    "a taint with a long value": (
        lambda: parse_taint_changes([f"n1=k={64 * 'v'}:NoSchedule"]),
        f"value '{64 * 'v'}': must be no more than 63 bytes",
    ),
}


@pytest.mark.parametrize(("parse", "message"), SYNTAX_ERRORS.values(), ids=SYNTAX_ERRORS.keys())
def test_a_label_or_taint_that_the_api_server_refuses_is_an_error(parse: Callable[[], Any], message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        parse()
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(("parse", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_an_invalid_value_is_named_with_the_form_that_is_wanted(parse: Callable[[], Any], message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        parse()
    assert caught.value.message == message
