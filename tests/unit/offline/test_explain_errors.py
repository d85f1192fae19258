"""Explanations of attempts that end early: a plugin fails, PreFilter turns the pod away, or nodes are equally good."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from extender import wiring
from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.points import PreFiltered
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.verdict import Code, Rejection, Status
from extender.offline.answers import answer
from extender.offline.capture import read_capture
from extender.offline.explain import Explained, explain
from extender.offline.explanation import explanation

NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {pods: 9}}}\n---\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}}\n"


class Broken:
    """Fails at whatever it is asked."""

    name: ClassVar[str] = "Broken"

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:
        raise RuntimeError("boom")

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        raise RuntimeError("boom")


class TurnsAway:
    """Turns every pod away before any node is asked."""

    name: ClassVar[str] = "TurnsAway"

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        return PreFiltered(Status(Code.UNRESOLVABLE, ("not today",)))


class ByName:
    """Scores nodes by the number in their name."""

    name: ClassVar[str] = "ByName"

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:
        return np.array([int(name.rpartition("-")[2]) for name in nodes.names], dtype=np.int64)


BARE: dict[str, Any] = {
    "pre_filters": (),
    "filters": (),
    "post_filters": (),
    "pre_scores": (),
    "scores": (),
}


def explained(tmp_path: Path, names: Sequence[str], **points: Any) -> Explained:
    path = tmp_path / "c.yaml"
    path.write_text("".join(NODE % name for name in names) + POD)
    profile: Profile = replace(wiring.scheduling().first, **{**BARE, **points})
    scheduler = profile.scheduler_name
    (found,) = explain(read_capture([str(path)]), ["web"], {scheduler: profile}, [scheduler], wiring.engine())
    return found


def text(found: Explained) -> str:
    return explanation(found.examination, found.cluster)


def test_a_filter_that_fails_ends_the_attempt(tmp_path: Path) -> None:
    found = explained(tmp_path, ["n-1", "n-2"], filters=(Broken(),))
    values = answer(found.examination)
    assert values["nodes"]["n-1"]["filters"] == {"Broken": {"code": "Error", "reasons": ["RuntimeError: boom"]}}
    assert (values["feasible"], values["scores"], values["best"]) == ([], {}, [])
    assert values["message"] == 'running "Broken" filter plugin: RuntimeError: boom'
    assert text(found) == (
        "Pod default/web\n"
        "  is not scheduled: an error ends the attempt, another follows after a while (reason SchedulerError)\n"
        '  running "Broken" filter plugin: RuntimeError: boom\n'
    )


def test_scoring_that_fails_leaves_no_node_chosen(tmp_path: Path) -> None:
    found = explained(tmp_path, ["n-1", "n-2"], scores=(WeightedScore(Broken(), 1),))
    values = answer(found.examination)
    assert (values["feasible"], values["scores"], values["best"]) == (["n-1", "n-2"], {}, [])
    assert values["message"] == 'running Score plugins: plugin "Broken" failed with: RuntimeError: boom'
    assert text(found) == (
        "Pod default/web\n  fits on 2 of 2 nodes\n"
        "  is not scheduled: an error ends the attempt, another follows after a while (reason SchedulerError)\n"
        '  running Score plugins: plugin "Broken" failed with: RuntimeError: boom\n'
    )


def test_scoring_that_fails_does_not_matter_where_only_one_node_fits(tmp_path: Path) -> None:
    found = explained(tmp_path, ["n-1"], scores=(WeightedScore(Broken(), 1),))
    values = answer(found.examination)
    assert (values["feasible"], values["scores"], values["best"], values["message"]) == (["n-1"], {}, ["n-1"], None)
    assert text(found) == (
        "Pod default/web\n  fits on 1 of 1 node\n  n-1 is the only one, so it is taken whatever its score\n"
    )


def test_a_pod_that_is_turned_away_as_a_whole(tmp_path: Path) -> None:
    found = explained(tmp_path, ["n-1"], pre_filters=(TurnsAway(),))
    values = answer(found.examination)
    status = {"code": "UnschedulableAndUnresolvable", "plugin": "TurnsAway", "reasons": ["not today"]}
    assert values["preFilter"] == {"status": status, "nodes": None}
    assert text(found) == (
        "Pod default/web\n  fits on none of 1 node\n  0/1 nodes are available: not today.\n\n"
        "  It was turned away by TurnsAway before any node was asked: not today\n"
    )


def test_a_cluster_without_nodes(tmp_path: Path) -> None:
    assert text(explained(tmp_path, [])) == (
        "Pod default/web\n  fits on none of 0 nodes\n  no nodes available to schedule pods\n"
    )


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (
            ["a-7", "b-7", "c-4"],
            "a-7, b-7 are equally good (total 14), 6 ahead of c-4; one is taken at random: ByName +6",
        ),
        (
            ["a-7", "b-7", "c-7", "d-7", "e-4"],
            "a-7, b-7, c-7 and 1 more are equally good (total 14), 6 ahead of e-4; one is taken at random: ByName +6",
        ),
        (["a-7", "b-7"], "all are equally good (total 14); one of them is taken at random"),
        (["a-4", "b-7"], "b-7 is best (total 14), 6 ahead of a-4: ByName +6"),
    ],
    ids=["two of three", "more than are shown", "all", "one"],
)
def test_equally_good_nodes_are_named(tmp_path: Path, names: list[str], line: str) -> None:
    found = explained(tmp_path, names, scores=(WeightedScore(ByName(), 2),))
    assert text(found).splitlines()[2] == f"  {line}"
