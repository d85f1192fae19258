"""Which pods a plan may evict, with the reason why it may not evict the others."""

from typing import Any

import pytest

from extender.planning.rebalance.movable_pods import find_obstacle, stays_with_node
from extender.planning.remaining_disruptions import ClusterBudgets, RemainingDisruptions
from tests.unit.planning.clusters import budget, make_cache, node, pod

WEB = {"app": "web"}
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "a pod of a controller": (pod("a", on="n1"), [], ""),
    "a pod whose budget allows it": (pod("a", on="n1", labels=WEB), [budget("web", WEB, 1)], ""),
    "a DaemonSet pod": (pod("a", on="n1", owner="DaemonSet"), [], "belongs to its node"),
    "a pod without a controller": (pod("a", on="n1", owner=""), [], "has no controller that creates a new pod"),
    "a pod that the cluster autoscaler must not evict": (
        pod("a", on="n1", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        [],
        "has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict=false",
    ),
    "a pod that Karpenter must not evict": (
        pod("a", on="n1", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        [],
        "has the annotation karpenter.sh/do-not-disrupt=true",
    ),
    "a pod of another scheduler": (
        pod("a", on="n1", schedulerName="other"),
        [],
        'waits for scheduler "other", which has no profile',
    ),
    "a pod whose budget is used up": (
        pod("a", on="n1", labels=WEB),
        [budget("web", WEB, 0)],
        "budget default/web does not allow it",
    ),
    "a pod with two budgets": (
        pod("a", on="n1", labels=WEB),
        [budget("web", WEB, 1), budget("second", WEB, 1)],
        "budget default/web, default/second does not allow it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_obstacles_of(case: str) -> None:
    body, budgets, expected = CASES[case]
    cache = make_cache(node("n1"), body, *budgets)
    (assigned_pod,) = cache.assigned_pods.values()
    remaining_disruptions = RemainingDisruptions(ClusterBudgets(cache.snapshot()))
    assert find_obstacle(assigned_pod, ("default-scheduler",), remaining_disruptions) == expected


def test_only_daemon_mirror_and_terminating_pods_stay_with_their_node() -> None:
    terminating = pod("t", on="n1")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    mirror = pod("m", on="n1", annotations={"kubernetes.io/config.mirror": "x"})
    cache = make_cache(
        node("n1"), terminating, mirror, pod("d", on="n1", owner="DaemonSet"), pod("o", on="n1", owner="")
    )
    staying = {entry.pod.metadata.name for entry in cache.assigned_pods.values() if stays_with_node(entry)}
    assert staying == {"t", "m", "d"}
