"""The plain sentence before kube-scheduler's message."""

from types import SimpleNamespace
from typing import Any

from extender.analysis.explanation.plain_reasons import summarize_rejections
from extender.cycle.explain_pod import NodeFilterStatus
from extender.cycle.pre_filter import PreFilterRun
from extender.framework.status import Code, Status


def summarize(*failures: tuple[str, tuple[str, ...]] | None) -> str:
    nodes = {}
    for index, failure in enumerate(failures):
        status = None if failure is None else Status(Code.UNSCHEDULABLE, failure[1], failure[0])
        nodes[f"n{index}"] = NodeFilterStatus({}, status)
    explanation: Any = SimpleNamespace(nodes=nodes, diagnosis=None)
    return summarize_rejections(explanation)


def test_each_node_counts_once_for_its_first_reason() -> None:
    cpu = ("NodeResourcesFit", ("Insufficient cpu", "Insufficient memory"))
    taint = ("TaintToleration", ("node(s) had untolerated taint(s)",))
    assert summarize(cpu, taint, cpu, None) == (
        "2 nodes have too little cpu, 1 node has a taint that it does not tolerate"
    )


def test_the_reasons_of_a_plugin_with_one_subject_are_one_group() -> None:
    missing_label = ("PodTopologySpread", ("node(s) didn't match pod topology spread constraints (missing label)",))
    skew = ("PodTopologySpread", ("node(s) didn't match pod topology spread constraints",))
    assert summarize(missing_label, skew) == "2 nodes would break its topology spread"


def test_the_reason_of_another_plugin_is_shown_as_it_is() -> None:
    assert summarize(("Licence", ("no licence left",))) == "1 node: no licence left"
    assert summarize(("Licence", ())) == "1 node: Licence"


def test_at_most_four_reasons_are_shown() -> None:
    failures = [("NodeResourcesFit", (f"Insufficient example.com/r{index}",)) for index in range(6)]
    assert summarize(*failures).endswith("1 node has too little example.com/r3, 2 nodes for other reasons")


def test_if_filter_does_not_run_the_reason_of_pre_filter_is_shown() -> None:
    status = Status(Code.UNRESOLVABLE, ('persistentvolumeclaim "data" not found',), "VolumeRestrictions")
    rejected: Any = SimpleNamespace(nodes={}, diagnosis=SimpleNamespace(pre_filter_run=PreFilterRun(status)))
    assert summarize_rejections(rejected) == 'persistentvolumeclaim "data" not found'
    run = PreFilterRun(node_names=frozenset({"gone"}), restricting_plugins=("NodeAffinity",))
    restricted: Any = SimpleNamespace(nodes={}, diagnosis=SimpleNamespace(pre_filter_run=run))
    assert summarize_rejections(restricted) == "NodeAffinity allows only other nodes"


def test_without_a_filtered_node_the_summary_is_empty() -> None:
    assert summarize() == ""
