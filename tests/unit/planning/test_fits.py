"""The number of copies of a pod that fit, and what stops the next copy."""

from random import Random
from typing import Any

import msgspec
import pytest

from extender.analysis.pod_placer import PodPlacer
from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.analysis.simulate import SimulationOptions, simulate
from extender.answers.planning import FitCount, StoppingNodes
from extender.app import wiring
from extender.cache.cache import Cache
from extender.planning.fits import (
    count_fitting_copies,
    format_fit,
    format_fit_table,
    group_rejecting_nodes,
    make_stopping_nodes,
)
from tests.unit.planning.clusters import SETUP, ZONE, as_list, decode_pod, make_cache, node, pod

SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
]


def make_placer(cache: Cache, seed: int = 0) -> PodPlacer:
    return PodPlacer(cache, SETUP.profiles, wiring.make_runtime(), seed)


def test_copies_fill_the_free_resources_and_the_next_one_names_what_is_missing() -> None:
    cache = make_cache(node("n1", "4"), node("n2", "2"), node("n3", pods=1), pod("old", "1", on="n1"))
    result = count_fitting_copies(cache, decode_pod(pod("web")), make_placer(cache), limit=100)
    assert (result.fits, result.placed) == (6, {"n1": 3, "n2": 2, "n3": 1})
    assert [(group.reasons, group.nodes) for group in result.stopped_by] == [
        (["Insufficient cpu"], ["n1", "n2"]),
        (["Too many pods"], ["n3"]),
    ]
    assert result.message is not None
    assert result.message.startswith("0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu.")


def test_the_cluster_is_the_same_afterwards() -> None:
    cache = make_cache(node("n1", "4"))
    web = decode_pod(pod("web"))
    counts = [count_fitting_copies(cache, web, make_placer(cache), limit=9).fits for _ in range(2)]
    assert counts == [4, 4]
    assert (list(cache.assigned_pods), list(cache.pending_pods)) == ([], [])


def test_the_count_stops_at_the_limit() -> None:
    cache = make_cache(node("n1", "4"))
    result = count_fitting_copies(cache, decode_pod(pod("web")), make_placer(cache), limit=2)
    assert (result.fits, result.last, result.message, result.stopped_by) == (2, "n1", None, [])


def test_a_spread_constraint_stops_the_copies_although_nodes_have_space() -> None:
    cache = make_cache(node("a1", "1", zone="a"), node("b1", "9", zone="b"))
    web = decode_pod(pod("web", labels={"app": "a"}, topologySpreadConstraints=SPREAD))
    result = count_fitting_copies(cache, web, make_placer(cache), limit=100)
    assert (result.fits, result.placed) == (3, {"b1": 2, "a1": 1})
    assert [(group.reasons, group.nodes) for group in result.stopped_by] == [
        (["Insufficient cpu"], ["a1"]),
        (["node(s) didn't match pod topology spread constraints"], ["b1"]),
    ]


def test_a_gated_pod_does_not_fit_at_all() -> None:
    web = decode_pod(pod("web", schedulingGates=[{"name": "x"}]))
    cache = make_cache(node("n1"))
    result = count_fitting_copies(cache, web, make_placer(cache), limit=100)
    assert (result.fits, result.last) == (0, None)
    assert [group.reasons for group in result.stopped_by] == [
        ["not enqueued because of SchedulingGates: waiting for scheduling gates: [x]"]
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_copies_are_placed_as_simulate_places_them(seed: int) -> None:
    rng = Random(seed)
    nodes = [node(f"n{i}", str(rng.randint(1, 6)), rng.randint(1, 8), rng.choice("abc")) for i in range(8)]
    pods = [pod(f"p{i}", "500m", on=f"n{rng.randrange(8)}", labels={"app": rng.choice("ab")}) for i in range(6)]
    spec: dict[str, Any] = rng.choice([{}, {"topologySpreadConstraints": SPREAD}])
    web = pod("web", rng.choice(["300m", "1"]), owner="", labels={"app": "a"}, **spec)
    cache = make_cache(*nodes, *pods)
    result = count_fitting_copies(cache, decode_pod(web), make_placer(cache, seed), limit=99)
    copies = [{**web, "metadata": {**web["metadata"], "name": f"web-{i}", "uid": f"u{i}"}} for i in range(60)]
    cache = load_cache(parse_recording(as_list([*nodes, *pods, *copies]).encode(), "test"))
    placements = simulate(cache, SETUP.profiles, wiring.make_runtime(), SimulationOptions(seed)).placements
    placed = [placement.node for placement in placements if placement.node]
    assert result.fits == len(placed) < 60
    assert result.placed == {name: placed.count(name) for name in result.placed}
    assert result.last == placed[-1]


def find_groups(*objects: dict[str, object], **spec: Any) -> list[StoppingNodes]:
    cache = make_cache(*objects)
    attempt = PodPlacer(cache, SETUP.profiles, wiring.make_runtime()).place(decode_pod(pod("new", "2", **spec)))
    assert attempt.failure is not None
    return group_rejecting_nodes(attempt.failure, cache.snapshot().names)


def test_nodes_with_equal_reasons_are_one_group_and_the_largest_group_is_first() -> None:
    taint = [{"key": "a", "effect": "NoSchedule"}]
    groups = find_groups(node("n1", taints=taint), node("n2", "1"), node("n3", "1"))
    assert groups == [
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n2", "n3")),
        make_stopping_nodes(("node(s) had untolerated taint(s)",), ("TaintToleration",), ("n1",)),
    ]


def test_a_node_with_two_reasons_of_one_plugin_is_in_a_group_of_its_own() -> None:
    groups = find_groups(node("n1", "1"), node("n2", "1", pods=0))
    assert groups == [
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n1",)),
        make_stopping_nodes(("Too many pods", "Insufficient cpu"), ("NodeResourcesFit",), ("n2",)),
    ]


def test_nodes_that_prefilter_excludes_have_its_reason() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    groups = find_groups(node("n1", "1"), node("n2"), node("n3"), affinity=affinity)
    assert groups == [
        make_stopping_nodes(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), ("NodeAffinity",), ("n2", "n3")),
        make_stopping_nodes(("Insufficient cpu",), ("NodeResourcesFit",), ("n1",)),
    ]


def test_a_rejection_by_prefilter_is_one_group_of_all_nodes() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    groups = find_groups(node("n1"), node("n2"), volumes=volumes)
    assert [(group.reasons, group.nodes) for group in groups] == [
        (['persistentvolumeclaim "data" not found'], ["n1", "n2"])
    ]


def test_a_cluster_without_nodes_has_one_group_without_nodes() -> None:
    assert find_groups() == [make_stopping_nodes(("no nodes available to schedule pods",), (), ())]


def count(cpu: str = "1", limit: int = 100, **spec: Any) -> FitCount:
    cache = make_cache(*(node(f"n{number}", "2") for number in range(5)), node("small", "1"))
    web = decode_pod(pod("web", cpu, preemptionPolicy="Never", **spec))
    return count_fitting_copies(cache, web, PodPlacer(cache, SETUP.profiles, wiring.make_runtime(), 3), limit=limit)


def test_the_text_has_the_number_the_reasons_and_the_copies_by_node() -> None:
    result = count()
    assert result.message is not None
    assert format_fit(result) == (
        "11 more copies of default/web fit.\n"
        f"The last copy is on {result.last}.\n"
        "\n"
        "What stops the next copy\n"
        "  6 nodes  Insufficient cpu  n0, n1, n2 and 3 more\n"
        "\n"
        f"{result.message}\n"
        "\n"
        "Copies by node\n"
        "  2  on each of 5 nodes  n0, n1, n2 and 2 more\n"
        "  1  on 1 node           small\n"
    )


def test_the_values_always_have_the_same_keys() -> None:
    stopped, limited = msgspec.to_builtins(count()), msgspec.to_builtins(count(limit=1))
    assert list(stopped) == list(limited) == ["pod", "fits", "limitReached", "last", "placed", "stoppedBy", "message"]
    assert (stopped["fits"], stopped["placed"]["small"], stopped["limitReached"]) == (11, 1, False)
    assert [(group["reasons"], group["count"]) for group in stopped["stoppedBy"]] == [(["Insufficient cpu"], 6)]
    assert (limited["fits"], limited["limitReached"], limited["stoppedBy"], limited["message"]) == (1, True, [], None)


def test_a_pod_that_does_not_fit_and_a_limit_have_their_own_first_lines() -> None:
    assert format_fit(count("9")).startswith("No copy of default/web fits.\n\nWhat stops the next copy\n")
    first = format_fit(count(limit=1)).splitlines()[0]
    assert first == "At least 1 more copy of default/web fits; the count stopped at the limit."


def test_the_table_has_one_line_for_each_pod() -> None:
    gates = [{"name": "x"}]
    lines = format_fit_table([count("9"), count(limit=2), count(schedulingGates=gates)]).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["POD", "FITS"],
        ["default/web", "0"],
        ["default/web", "2"],
        ["default/web", "0"],
    ]
    assert lines[1].endswith("-          Insufficient cpu on 6 nodes")
    assert lines[2].endswith("the limit")
    assert lines[3].endswith("not enqueued because of SchedulingGates: waiting for scheduling gates: [x]")
