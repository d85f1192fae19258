"""VolumeRestrictions beyond its cases: pods imagined on and off nodes change how often a claim is in use. B083."""

from typing import Any

import pytest

from extender.cluster.hypothesis import Hypothesis
from extender.framework.verdict import Code
from extender.plugins.volume_restrictions import VolumeRestrictions
from tests.build import a_cluster, a_node, a_pod, a_query, an_object


def volumes(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]}


def a_claim(name: str) -> Any:
    meta = {"name": name, "namespace": "default"}
    return an_object(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta,
            "spec": {"accessModes": ["ReadWriteOncePod"]},
        }
    )


@pytest.mark.parametrize(
    ("others", "refused"),
    [
        pytest.param([("-", "default", "data")], False, id="without its user the claim is free"),
        pytest.param([("-", "default", "data"), ("+", "default", "data")], True, id="a user that comes back takes it"),
        pytest.param([("-", "default", "data"), ("+", "other", "data")], True, id="the namespace is not compared"),
        pytest.param([("-", "default", "other")], True, id="the user of another claim does not matter"),
        pytest.param([], True, id="as long as its user is there it is taken"),
    ],
)
def test_imagined_pods_count(others: list[tuple[str, str, str]], refused: bool) -> None:
    state = a_cluster(
        a_node("node"), a_pod("user", node="node", spec=volumes("data")), a_claim("data"), a_claim("other")
    )
    cluster = state.snapshot()
    plugin, pod = VolumeRestrictions(), a_query(a_pod("asks", spec=volumes("data")), state)
    before = plugin.pre_filter(pod, cluster).notes
    notes = plugin.clone(before)
    imagined = Hypothesis(cluster)
    for number, (sign, namespace, claim) in enumerate(others):
        other = a_query(a_pod(f"p{number}", namespace=namespace, spec=volumes(claim)), state)
        placed = imagined.place(other, "node")
        change = plugin.add_pod if sign == "+" else plugin.remove_pod
        change(pod, placed, 0, imagined.snapshot(), notes)
    found = plugin.filter(pod, cluster.view(), notes)
    assert [group.reason.code for group in found] == ([Code.UNSCHEDULABLE] if refused else [])
    assert len(plugin.filter(pod, cluster.view(), before)) == 1, "the notes that were copied stay as they were"
