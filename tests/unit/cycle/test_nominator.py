"""Nominated pods count on their nodes for pods of no higher priority."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extender.app import wiring
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import PASS, PreFilterResult
from extender.framework.status import Reason, Rejection
from tests.build import make_cluster, make_node, make_pod
from tests.unit.cycle.fakes import RejectingFilter, make_profile

PROFILE = wiring.build_setup().first_profile
NODE = {"cpu": "1", "memory": "4Gi", "pods": "9"}


@pytest.mark.parametrize(
    ("priority", "feasible"),
    [(4, [False, True]), (5, [False, True]), (6, [True, True])],
    ids=["a higher nominated priority counts", "an equal one counts", "a lower one does not count"],
)
def test_a_nominated_pod_takes_its_node_from_pods_of_no_higher_priority(priority: int, feasible: list[bool]) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods (1.36)."""
    cache = make_cluster(make_node("n1", allocatable=NODE), make_node("n2", allocatable=NODE))
    nominated = make_pod("nominated", priority=5, requests={"cpu": "1"})
    cache.add_or_update_pod(nominated)
    cache.nominate(nominated, "n1")
    snapshot = cache.snapshot()
    pod = snapshot.make_pod_info(make_pod("web", priority=priority, requests={"cpu": "1"}))

    diagnosis = find_nodes_that_pass_filters(pod, snapshot, PROFILE, PluginRuntime(), with_rejections=True)

    assert diagnosis.feasible.tolist() == feasible


def test_a_nominated_pod_does_not_count_against_itself() -> None:
    cache = make_cluster(make_node("n1", allocatable=NODE))
    pod = make_pod("web", requests={"cpu": "1"})
    cache.add_or_update_pod(pod)
    cache.nominate(pod, "n1")
    snapshot = cache.snapshot()

    diagnosis = find_nodes_that_pass_filters(snapshot.make_pod_info(pod), snapshot, PROFILE, PluginRuntime())

    assert diagnosis.feasible.tolist() == [True]


class NeedsCompany:
    """Rejects nodes without a nominated pod, and with *rejects_all* those with one, for another reason."""

    name = "NeedsCompany"

    def __init__(self, *, rejects_all: bool = False) -> None:
        self.rejects_all = rejects_all

    def pre_filter(self, *_: Any) -> PreFilterResult:
        return PreFilterResult(state={})

    def filter(self, _pod: Any, nodes: Any, state: dict[str, str]) -> tuple[Rejection, ...]:
        is_alone = np.array([name not in state for name in nodes.names], dtype=np.bool_)
        is_crowded = ~is_alone if self.rejects_all else np.zeros_like(is_alone)
        return Rejection(is_alone, Reason("alone")), Rejection(is_crowded, Reason("crowded"))

    def clone(self, state: dict[str, str]) -> dict[str, str]:
        return dict(state)

    def add_pod(self, _pod: Any, added_pod: Any, _row: int, _snapshot: Any, state: dict[str, str]) -> None:
        state[added_pod.node_name] = added_pod.key

    def remove_pod(self, *_: Any) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("plugins", "reason_counts"),
    [
        pytest.param(
            (NeedsCompany(), RejectingFilter("Other")),
            {"alone": 2},
            id="a node that passes only with its nominated pods",
        ),
        pytest.param(
            (NeedsCompany(), RejectingFilter("Other", "n1")),
            {"refused by Other": 1, "alone": 1},
            id="a node that another plugin rejects with its nominated pods",
        ),
        pytest.param(
            (NeedsCompany(rejects_all=True),),
            {"alone": 1, "crowded": 1},
            id="a node that is rejected for another reason with its nominated pods",
        ),
    ],
)
def test_a_node_must_pass_with_and_without_its_nominated_pods(
    plugins: tuple[Any, ...], reason_counts: dict[str, int]
) -> None:
    cache, nominated = make_cluster(make_node("n1"), make_node("n2")), make_pod("nominated")
    cache.add_or_update_pod(nominated)
    cache.nominate(nominated, "n1")
    snapshot = cache.snapshot()
    profile = make_profile(*plugins)

    diagnosis = find_nodes_that_pass_filters(
        snapshot.make_pod_info(make_pod("web")), snapshot, profile, PluginRuntime(), with_rejections=True
    )

    assert diagnosis.feasible.tolist() == [False, False]
    assert diagnosis.count_reasons() == reason_counts


@pytest.mark.parametrize(
    ("add", "message"),
    [(lambda: int("x"), "ValueError: invalid literal for int() with base 10: 'x'"), (sys.exit, "SystemExit")],
    ids=["raises", "exits"],
)
def test_a_plugin_that_fails_to_add_a_nominated_pod_ends_only_the_attempt(
    add: Callable[[], object], message: str
) -> None:
    """Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterExtensionAddPod (1.36)."""

    class Counts:
        name = "Counts"

        def pre_filter(self, *_: Any) -> PreFilterResult:
            return PASS

        def filter(self, *_: Any) -> tuple[()]:
            return ()

        def clone(self, state: Any) -> Any:
            return state

        def add_pod(self, *_: Any) -> None:
            add()

        def remove_pod(self, *_: Any) -> None:
            """Do nothing."""

    cache, nominated = make_cluster(make_node("n1"), make_node("n2")), make_pod("nominated")
    cache.add_or_update_pod(nominated)
    cache.nominate(nominated, "n1")
    snapshot = cache.snapshot()

    pod = snapshot.make_pod_info(make_pod("web"))
    diagnosis = find_nodes_that_pass_filters(pod, snapshot, make_profile(Counts()), PluginRuntime())

    assert diagnosis.error is not None
    assert diagnosis.error.message.startswith(f'running "Counts" filter plugin: {message}')
