"""What a waiting pod group lacks, and where most of its members fit."""

from typing import Any

from extender.analysis.explain import PodReport, report_pod
from extender.analysis.pod_group_outcome import PodGroupSimulator
from extender.analysis.pod_group_shortfall import GroupShortfall
from extender.app import wiring
from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.cycle.plugin_runtime import PluginRuntime
from tests.build import make_cluster, make_node
from tests.pod_group_builders import make_group_member, make_pod_group


def make_rack_node(name: str, rack: str, cpu: int) -> Any:
    labels = {"rack": rack, "kubernetes.io/hostname": name}
    return make_node(name, labels=labels, allocatable={"cpu": str(cpu), "memory": "8Gi", "pods": "9"})


def make_gang(min_count: int, *cpus: int, **spec: Any) -> list[Any]:
    """Make a gang with one pending member per number of CPUs: a, b and so on."""
    members = [make_group_member(name, requests={"cpu": str(cpu)}) for name, cpu in zip("abcdef", cpus, strict=False)]
    return [make_pod_group(min_count=min_count, **spec), *members]


def explain_first(cache: Cache, *gates: str) -> PodReport:
    """Explain the member a."""
    feature_gates = FeatureGates(dict.fromkeys(("GenericWorkload", *gates), True), RELEASE_1_37)
    profiles = dict(wiring.build_setup(gates=feature_gates).profiles)
    runtime = PluginRuntime()
    pod = next(pod for pod in cache.pending_pods.values() if pod.metadata.name == "a")
    simulator = PodGroupSimulator(cache, profiles, runtime)
    return report_pod(pod, cache, profiles["default-scheduler"], runtime, simulator)


def find_shortfall(cache: Cache, *gates: str) -> GroupShortfall | None:
    outcome = explain_first(cache, *gates).pod_group_outcome
    assert outcome is not None
    return outcome.shortfall


RACKS = (make_rack_node("n1", "a", 2), make_rack_node("n2", "b", 3), make_rack_node("n3", "b", 1))


def test_the_rack_on_which_the_most_members_fit_is_first() -> None:
    cache = make_cluster(*RACKS, *make_gang(3, 2, 2, 1, topology="rack"))
    shortfall = find_shortfall(cache, "TopologyAwareWorkloadScheduling")
    assert shortfall is not None
    assert [(placement.name, placement.fitting) for placement in shortfall.placements] == [("b", 2), ("a", 1)]
    assert (shortfall.missing_count, shortfall.rejected_pod) == (1, "default/b")
    assert [near_miss.node for near_miss in shortfall.nearest_nodes] == ["n2", "n3"]


def test_all_members_are_tried_although_the_first_rejection_ends_the_cycle() -> None:
    cache = make_cluster(make_rack_node("n1", "a", 2), *make_gang(3, 9, 1, 1))
    shortfall = find_shortfall(cache)
    assert shortfall is not None
    assert shortfall.format_lines() == [
        "    the group needs 3 pods with a node at the same time: 0 placed, 2 fitting, 1 missing",
        "    default/a: 0/1 nodes are available: 1 Insufficient cpu.",
        "    default/b: fits on n1",
        "    default/c: fits on n1",
        "    nearest nodes for default/a, beside the members before it:",
        "      n1: Insufficient cpu: wants 9, but only 2 are free (7 short); even the empty node has only 2",
    ]


def test_pods_that_have_a_node_count_for_the_gang() -> None:
    placed = make_group_member("placed", node="n1", requests={"cpu": "1"})
    shortfall = find_shortfall(make_cluster(make_rack_node("n1", "a", 2), placed, *make_gang(3, 1, 1)))
    assert shortfall is not None
    values = shortfall.to_values()
    assert {key: values[key] for key in ("minCount", "pods", "placed", "fitting", "missing")} == {
        "minCount": 3,
        "pods": 3,
        "placed": 1,
        "fitting": 1,
        "missing": 1,
    }


def test_a_gang_without_enough_pods_says_how_many_must_be_created() -> None:
    report = explain_first(make_cluster(make_rack_node("n1", "a", 9), *make_gang(4, 1, 1)))
    assert report.to_text().splitlines()[-5:] == [
        "  As a member of pod group default/ring, which PreEnqueue holds",
        "    the pod is not placed",
        "    message of the pod: waiting for minCount pods from a gang to appear in scheduling queue",
        "    the group needs 4 pods with a node at the same time: 0 placed, 0 fitting, 4 missing",
        "    2 more pods must be created",
    ]
    assert report.to_values()["podGroup"]["shortfall"]["missing"] == 4


def test_a_group_that_can_be_scheduled_lacks_nothing() -> None:
    assert find_shortfall(make_cluster(make_rack_node("n1", "a", 9), *make_gang(2, 1, 1))) is None
