"""Explanations of attempts in which a plugin raises, PreFilter rejects the pod, or nodes have equal scores."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from extender.analysis.explain import PodReport
from extender.analysis.explanation.explain_json import make_explanation_values
from extender.analysis.explanation.explain_text import format_explanation
from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.extension_points import PreFilterResult
from extender.framework.profiles import Profile, WeightedScore
from extender.framework.status import Code, Rejection, Status
from tests.explain import explain_pods

NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {pods: 9}}}\n---\n"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}]}}\n"


class Broken:
    """A plugin that raises in Filter and Score."""

    name: ClassVar[str] = "Broken"

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        raise RuntimeError("boom")

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        raise RuntimeError("boom")


class RejectAll:
    """A PreFilter plugin that rejects every pod."""

    name: ClassVar[str] = "RejectAll"

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return PreFilterResult(Status(Code.UNRESOLVABLE, ("not today",)))


class NodeNumber:
    """A Score plugin: the score of a node is the number in its name."""

    name: ClassVar[str] = "NodeNumber"

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        return np.array([int(name.rpartition("-")[2]) for name in nodes.names], dtype=np.int64)


NO_PLUGINS: dict[str, Any] = {
    "pre_filter_plugins": (),
    "filter_plugins": (),
    "post_filter_plugins": (),
    "pre_score_plugins": (),
    "score_plugins": (),
}


def explain(tmp_path: Path, names: Sequence[str], **plugins: Any) -> PodReport:
    path = tmp_path / "c.yaml"
    path.write_text("".join(NODE % name for name in names) + POD)
    profile: Profile = replace(wiring.build_setup().first_profile, **{**NO_PLUGINS, **plugins})
    scheduler = profile.scheduler_name
    (report,) = explain_pods(
        read_recording([str(path)]), ["web"], {scheduler: profile}, [scheduler], wiring.make_runtime()
    )
    return report


def text(report: PodReport) -> str:
    return format_explanation(report.explanation, report.snapshot)


def test_a_filter_plugin_that_raises_ends_the_attempt(tmp_path: Path) -> None:
    report = explain(tmp_path, ["n-1", "n-2"], filter_plugins=(Broken(),))
    values = make_explanation_values(report.explanation)
    assert values["nodes"]["n-1"]["filters"] == {
        "Broken": {"code": "Error", "reasons": ["RuntimeError: boom"], "reasonCodes": ["Error"]}
    }
    assert (values["feasible"], values["scores"], values["best"]) == ([], {}, [])
    assert values["message"] == 'running "Broken" filter plugin: RuntimeError: boom'
    assert text(report) == (
        "Pod default/web\n"
        "  is not scheduled: an error ends the attempt; the pod is retried after a while (reason SchedulerError)\n"
        '  running "Broken" filter plugin: RuntimeError: boom\n'
    )


def test_a_score_plugin_that_raises_ends_the_attempt(tmp_path: Path) -> None:
    report = explain(tmp_path, ["n-1", "n-2"], score_plugins=(WeightedScore(Broken(), 1),))
    values = make_explanation_values(report.explanation)
    assert (values["feasible"], values["scores"], values["best"]) == (["n-1", "n-2"], {}, [])
    assert values["message"] == 'running Score plugins: plugin "Broken" failed with: RuntimeError: boom'
    assert text(report) == (
        "Pod default/web\n  fits on 2 of 2 nodes\n"
        "  is not scheduled: an error ends the attempt; the pod is retried after a while (reason SchedulerError)\n"
        '  running Score plugins: plugin "Broken" failed with: RuntimeError: boom\n'
    )


def test_a_score_plugin_that_raises_is_ignored_for_a_single_feasible_node(tmp_path: Path) -> None:
    report = explain(tmp_path, ["n-1"], score_plugins=(WeightedScore(Broken(), 1),))
    values = make_explanation_values(report.explanation)
    assert (values["feasible"], values["scores"], values["best"], values["message"]) == (["n-1"], {}, ["n-1"], None)
    assert text(report) == (
        "Pod default/web\n  fits on 1 of 1 node\n  n-1 is the only one, so it is taken whatever its score\n"
    )


def test_a_pod_rejected_by_pre_filter_has_no_nodes(tmp_path: Path) -> None:
    report = explain(tmp_path, ["n-1"], pre_filter_plugins=(RejectAll(),))
    values = make_explanation_values(report.explanation)
    code = "UnschedulableAndUnresolvable"
    status = {"code": code, "plugin": "RejectAll", "reasons": ["not today"], "reasonCodes": ["Other"]}
    assert values["preFilter"] == {"status": status, "nodes": None}
    assert text(report) == (
        "Pod default/web\n  fits on none of 1 node: not today\n  0/1 nodes are available: not today.\n\n"
        "  Rejected by RejectAll at PreFilter: not today\n"
    )


def test_a_cluster_without_nodes(tmp_path: Path) -> None:
    assert text(explain(tmp_path, [])) == (
        "Pod default/web\n  fits on none of 0 nodes\n  no nodes available to schedule pods\n"
    )


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (
            ["a-7", "b-7", "c-4"],
            "a-7, b-7 are equally good (total 14), 6 ahead of c-4; one is taken at random: NodeNumber +6",
        ),
        (
            ["a-7", "b-7", "c-7", "d-7", "e-4"],
            "a-7, b-7, c-7 and 1 more are equally good (total 14), 6 ahead of e-4; one is taken at random: "
            "NodeNumber +6",
        ),
        (["a-7", "b-7"], "all are equally good (total 14); one of them is taken at random"),
        (["a-4", "b-7"], "b-7 is best (total 14), 6 ahead of a-4: NodeNumber +6"),
    ],
    ids=["two of three", "more than are shown", "all", "one"],
)
def test_equally_good_nodes_are_named(tmp_path: Path, names: list[str], line: str) -> None:
    report = explain(tmp_path, names, score_plugins=(WeightedScore(NodeNumber(), 2),))
    assert text(report).splitlines()[2] == f"  {line}"
