"""The number of copies of a pod that fit, and what stops the next copy."""

from random import Random

import pytest

from extender.analysis.pod_placer import PodPlacer
from extender.analysis.recorded_cluster import load_cache, parse_recording
from extender.analysis.simulate import SimulationOptions, simulate
from extender.app import wiring
from extender.cache.cache import Cache
from extender.planning.fits import count_fitting_copies
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
    spec = rng.choice([{}, {"topologySpreadConstraints": SPREAD}])
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
