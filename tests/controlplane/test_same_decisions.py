"""Compares our decisions with those of a real kube-scheduler on the same cluster, pod by pod."""

from typing import Any

import pytest

from tests.controlplane import mixed_cluster
from tests.controlplane.api_client import ApiClient, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.decision_diff import describe_difference, is_decided
from tests.controlplane.offline_scheduler import OfflineScheduler, list_objects
from tests.controlplane.resources import RESOURCES


def make_plugin_config(name: str, **options: Any) -> dict[str, Any]:
    """Make an entry of `pluginConfig`."""
    return {"name": name, "args": options}


OTHER_CONFIGURATION = {
    "profiles": [
        {
            "plugins": {
                "score": {
                    "disabled": [{"name": "ImageLocality"}, {"name": "TaintToleration"}],
                    "enabled": [{"name": "TaintToleration", "weight": 7}],
                },
                "filter": {"disabled": [{"name": "NodeUnschedulable"}]},
            },
            "pluginConfig": [
                make_plugin_config(
                    "NodeResourcesFit",
                    scoringStrategy={
                        "type": "RequestedToCapacityRatio",
                        "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 5}],
                        "requestedToCapacityRatio": {
                            "shape": [{"utilization": 0, "score": 2}, {"utilization": 70, "score": 10}]
                        },
                    },
                ),
                make_plugin_config(
                    "InterPodAffinity", hardPodAffinityWeight=40, ignorePreferredTermsOfExistingPods=True
                ),
                make_plugin_config(
                    "PodTopologySpread",
                    defaultingType="List",
                    defaultConstraints=[
                        {"maxSkew": 2, "topologyKey": mixed_cluster.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                    ],
                ),
                make_plugin_config(
                    "NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "example.com/gpu"}]
                ),
            ],
        }
    ]
}
"""A configuration that differs from the default in all points that affect these pods."""


@pytest.fixture
def cluster(api: ApiClient) -> ApiClient:
    """Create fifty different nodes."""
    for obj in [*mixed_cluster.make_namespaces_and_workloads(), *mixed_cluster.make_nodes()]:
        api.create(obj)
    return api


@pytest.mark.parametrize(
    ("seed", "configuration"),
    [(1, {}), (2, OTHER_CONFIGURATION)],
    ids=["default configuration", "other configuration"],
)
def test_two_hundred_different_pods_are_scheduled_like_by_kube_scheduler(
    control_plane: ControlPlane, cluster: ApiClient, seed: int, configuration: dict[str, Any]
) -> None:
    """Pods are created one after another; a rejected pod is deleted, so that it is not requeued.

    kube-scheduler selects one of our best nodes, as it breaks ties at random, and messages are equal.
    """
    scheduler, differences, counts = OfflineScheduler(configuration), [], {"placed": 0, "rejected": 0, "gated": 0}
    other_lists = list_objects(cluster, [kind for kind in RESOURCES if kind != "Pod"])
    control_plane.start_kube_scheduler(configuration)
    for manifest in mixed_cluster.make_pods(seed):
        lists = other_lists + b"\n" + list_objects(cluster, ["Pod"])
        pod = cluster.create(manifest)
        upstream = cluster.wait_for(pod, is_decided, f"a decision about {object_key(pod)}")
        explanation = scheduler.explain(pod, lists)
        difference = describe_difference(upstream, explanation)
        if difference:
            differences.append(f"{object_key(pod)}: {difference}")
        if upstream["spec"].get("nodeName"):
            counts["placed"] += 1
        else:
            counts["gated" if explanation["preEnqueue"] else "rejected"] += 1
            cluster.delete(upstream)
    assert differences == []
    assert all(count >= 10 for count in counts.values()), counts
