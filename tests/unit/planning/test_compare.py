"""Two configurations for the same pods: differences, pods that return to the queue, and times."""

from extender.answers.simulation import DecisionTimes
from extender.app import wiring
from extender.cache.cache import Cache
from extender.planning.compare import (
    Comparison,
    ConfiguredCluster,
    compare,
    format_comparison,
    get_percentile,
    make_comparison_values,
    return_pods_to_queue,
)
from tests.unit.planning.clusters import SETUP, make_cache, node, pod

MOST_ALLOCATED = wiring.build_setup_from_document(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
                        },
                    }
                ],
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
            }
        ],
    },
    "most-allocated",
)


def configured_cluster(cache: Cache, setup: wiring.SchedulerSetup = SETUP) -> ConfiguredCluster:
    return ConfiguredCluster(cache, setup.profiles, wiring.make_runtime())


def make_small_cluster() -> Cache:
    return make_cache(node("full", "4"), node("empty", "4"), pod("a", "2", on="full"), pod("b"), pod("c", "9"))


def list_differences(comparison: Comparison) -> list[tuple[str, str | None, str | None]]:
    return [(entry.pod, entry.first.node, entry.second.node) for entry in comparison.differences]


def test_a_pod_that_goes_elsewhere_is_a_difference() -> None:
    comparison = compare(
        configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster(), MOST_ALLOCATED)
    )
    assert list_differences(comparison) == [("default/b", "empty", "full")]
    assert comparison.pod_count == 2
    assert comparison.first.milliseconds.p50 > 0


def test_equal_configurations_have_no_difference() -> None:
    comparison = compare(configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster()))
    assert comparison.differences == []


def test_the_progress_counts_the_pods_of_both_configurations() -> None:
    steps: list[tuple[int, int]] = []
    compare(
        configured_cluster(make_small_cluster()),
        configured_cluster(make_small_cluster()),
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_pod_of_an_unknown_scheduler_waits() -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "other"}],
    }
    other = wiring.build_setup_from_document(document, "other")
    objects = (node("n1"), pod("a"), pod("b", schedulerName="other"))
    comparison = compare(configured_cluster(make_cache(*objects)), configured_cluster(make_cache(*objects), other))
    assert list_differences(comparison) == [("default/a", "n1", None), ("default/b", None, "n1")]
    assert comparison.differences[0].second.reasons == ["no profile has the pod's scheduler name"]


def test_only_pods_that_a_controller_replaces_return_to_the_queue() -> None:
    cache = make_cache(
        node("n1"),
        pod("web", on="n1"),
        pod("alone", on="n1", owner=""),
        pod("agent", on="n1", owner="DaemonSet"),
    )
    return_pods_to_queue(cache)
    assert [pending.metadata.name for pending in cache.pending_pods.values()] == ["web"]
    assert sorted(assigned.key for assigned in cache.assigned_pods.values()) == ["default/agent", "default/alone"]


def test_the_time_at_a_fraction_is_that_of_a_pod() -> None:
    times = [2.0, 4.0, 1.0, 3.0]
    assert [get_percentile(times, fraction) for fraction in (0.0, 0.5, 0.99, 1.0)] == [1.0, 3.0, 4.0, 4.0]
    assert get_percentile([], 0.5) == 0.0


def make_comparison() -> Comparison:
    comparison = compare(
        configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster(), MOST_ALLOCATED)
    )
    comparison.first.milliseconds, comparison.second.milliseconds = DecisionTimes(2.0, 2.0), DecisionTimes(4.0, 4.0)
    return comparison


def test_the_text_has_the_differences_first() -> None:
    lines = format_comparison(make_comparison(), ("DEFAULT", "most.yaml")).splitlines()
    assert lines[:5] == [
        "1 of 2 pods goes elsewhere.",
        "",
        "  POD        DEFAULT  most.yaml",
        "  default/b  empty    full",
        "",
    ]
    rows = [line.split() for line in lines]
    assert ["waiting", "pods", "1", "1"] in rows
    assert ["nodes", "with", "pods", "2", "1"] in rows
    assert ["cpu", "3,", "38%,", "sd", "12.5%", "3,", "38%,", "sd", "37.5%"] in rows
    assert max(map(len, lines[:-1])) <= 80
    assert ["time", "per", "pod,", "median", "2.00", "ms", "4.00", "ms"] in rows


def test_the_text_of_equal_placements_says_so() -> None:
    comparison = compare(configured_cluster(make_small_cluster()), configured_cluster(make_small_cluster()))
    assert format_comparison(comparison, ("A", "B")).startswith("2 pods, no difference.\n\nTotals\n")


def test_the_values_have_both_outcomes() -> None:
    values = make_comparison_values(make_comparison(), 7)
    assert (values["seed"], values["pods"]) == (7, 2)
    assert values["different"] == [
        {
            "pod": "default/b",
            "first": {"node": "empty", "message": None, "reasons": [], "reasonCodes": []},
            "second": {"node": "full", "message": None, "reasons": [], "reasonCodes": []},
        }
    ]
    second = values["second"]
    assert (second["placed"], second["waiting"], second["evicted"], second["usedNodes"]) == (1, 1, [], 1)
    assert second["resources"]["cpu"] == {"requested": 3000, "allocatable": 8000, "deviation": 0.375}
    assert second["milliseconds"] == {"p50": 4.0, "p99": 4.0}
