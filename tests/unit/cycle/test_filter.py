"""Filter results by plugin and node."""

from typing import Any

import pytest

from extender.cycle.filter import FilterResults, run_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.cycle.pre_filter import PreFilterRun
from extender.framework.status import Code, Status
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile

SNAPSHOT = make_cluster(*map(make_node, "abc")).snapshot()


def filter_nodes(*plugins: RejectingFilter, all_filters: bool = False) -> FilterResults:
    pod = SNAPSHOT.make_pod_info(make_pod())
    return run_filters(pod, SNAPSHOT, make_profile(*plugins), PluginRuntime(), PreFilterRun(), all_filters=all_filters)


def test_first_rejections_name_each_node_once() -> None:
    results = filter_nodes(RejectingFilter("X", "a"), RejectingFilter("Y", "a", "b"))

    assert {name: rows.tolist() for name, rows in results.find_first_rejections().items()} == {
        "X": [True, False, False],
        "Y": [False, True, False],
    }
    assert results.find_feasible_nodes().tolist() == [False, False, True]


def test_all_rejections_name_every_plugin_of_a_node() -> None:
    results = filter_nodes(RejectingFilter("X", "a"), RejectingFilter("Y", "a", "b"), all_filters=True)

    assert {name: rows.tolist() for name, rows in results.find_all_rejections().items()} == {
        "X": [True, False, False],
        "Y": [True, True, False],
    }


def test_filtering_stops_when_no_node_is_left_unless_all_filters_must_run() -> None:
    first, last = RejectingFilter("First", "a", "b", "c"), RejectingFilter("Last")

    assert list(filter_nodes(first, last).columns) == ["First"]
    assert list(filter_nodes(first, last, all_filters=True).columns) == ["First", "Last"]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (0, Status(Code.UNSCHEDULABLE, ("full",), "Full")),
        (1, Status(Code.ERROR, ('running "Odd" filter plugin: lost',), "Odd")),
        (2, None),
    ],
    ids=["a rejection", "an error has the prefix of the plugin", "a feasible node"],
)
def test_the_first_failure_of_a_node(row: int, status: Status | None) -> None:
    odd = RejectingFilter("Odd", "b", text="lost", code=Code.ERROR)
    results = filter_nodes(RejectingFilter("Full", "a", text="full"), odd)

    assert results.get_first_rejection_status(row) == status
    assert results.find_first_error(row) == (status if row == 1 else None)


def test_only_the_nodes_of_pre_filter_are_evaluated() -> None:
    pod = SNAPSHOT.make_pod_info(make_pod())
    run = PreFilterRun(node_names=frozenset({"b", "unknown"}))

    results = run_filters(pod, SNAPSHOT, make_profile(), PluginRuntime(), run)

    assert results.evaluated_mask.tolist() == [False, True, False]


@pytest.mark.parametrize(("remembers", "names"), [(False, ["a", "b", "c"]), (True, ["b", "c"])])
def test_a_plugin_that_remembers_the_nodes_gets_no_rejected_nodes(remembers: bool, names: list[str]) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins (1.37)."""

    class Recorder(RejectingFilter):
        remembers_filtered_nodes = remembers
        seen: tuple[str, ...] = ()

        def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
            Recorder.seen = tuple(nodes.names)
            return super().filter(pod, nodes, state)

    filter_nodes(RejectingFilter("First", "a"), Recorder("Recorder"))
    assert list(Recorder.seen) == names
