"""The check of a scenario's names against a cluster."""

import pytest

from extender.api.kinds.node import Taint
from extender.planning.scenario import AddedNodes, LabelChange, Scale, Scenario, ScenarioError, TaintChange
from tests.unit.planning.clusters import ZONE, make_cache, node

CACHE = make_cache(node("worker-1", zone="a"), node("worker-2", zone="b"), node("worker-3", zone="b"))
TAINT = Taint(key="k", effect="NoSchedule")

ERRORS = {
    "an unknown node": (
        Scenario(drain=("worker1",)),
        ['--drain worker1: there is no such node; did you mean "worker-1"?'],
    ),
    "an unknown node without a similar name": (Scenario(remove=("zzz",)), ["--remove zzz: there is no such node"]),
    "an unknown template": (Scenario(add=(AddedNodes(1, "zzz"),)), ["--like zzz: there is no such node"]),
    "an unknown zone": (
        Scenario(lose=((ZONE, "c"),)),
        [f"--lose {ZONE}=c: no node has this value; {ZONE} has a, b"],
    ),
    "an unknown label": (
        Scenario(lose=(("kubernetes.io/host", "a"),)),
        [
            "--lose kubernetes.io/host=a: no node has the label kubernetes.io/host; "
            'did you mean "kubernetes.io/hostname"?'
        ],
    ),
    "a node that is drained and removed": (
        Scenario(drain=("worker-1",), remove=("worker-1",)),
        ["--drain worker-1: the scenario removes this node too; keep only one of the flags"],
    ),
    "a tainted node in a lost zone": (
        Scenario(lose=((ZONE, "b"),), taints=(TaintChange("worker-2", TAINT),)),
        ["--taint worker-2: the scenario removes this node too; keep only one of the flags"],
    ),
    "a node that is drained and cordoned": (
        Scenario(drain=("worker-1",), cordon=("worker-1",)),
        ["--cordon worker-1: --drain cordons this node too; keep only one of the flags"],
    ),
    "a node that is drained twice": (Scenario(drain=("worker-1", "worker-1")), ["--drain worker-1: is named twice"]),
    "a taint that is added and removed": (
        Scenario(taints=(TaintChange("worker-1", TAINT), TaintChange("worker-1", TAINT, remove=True))),
        ["--taint worker-1: k:NoSchedule is changed twice"],
    ),
    "a label with two values": (
        Scenario(labels=(LabelChange("worker-1", "a", "1"), LabelChange("worker-1", "a", None))),
        ["--label worker-1: a is changed twice"],
    ),
    "a workload that is scaled twice": (
        Scenario(scale=(Scale("deployment", "default", "web", 1), Scale("deployment", "default", "web", 2))),
        ["--scale deployment/web: is scaled twice"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("scenario", "errors"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_names_the_flag_and_the_fix(scenario: Scenario, errors: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.check(CACHE.snapshot())
    assert list(caught.value.errors) == errors


def test_a_scenario_that_matches_the_cluster_passes() -> None:
    Scenario(drain=("worker-1",), lose=((ZONE, "b"),), add=(AddedNodes(2, "worker-2"),)).check(CACHE.snapshot())


def test_lost_nodes_are_those_with_the_label_and_those_named() -> None:
    scenario = Scenario(remove=("worker-1",), lose=((ZONE, "b"),))
    assert scenario.find_lost_nodes(CACHE.snapshot()) == ["worker-1", "worker-2", "worker-3"]
