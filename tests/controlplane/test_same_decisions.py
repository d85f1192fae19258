"""Our decisions against those of a real kube-scheduler on the same cluster, pod by pod."""

from typing import Any

import pytest

from tests.controlplane import mixed
from tests.controlplane.agreement import decided, disagreement
from tests.controlplane.api import Api, key
from tests.controlplane.ours import Ours, lists
from tests.controlplane.plane import ControlPlane
from tests.controlplane.resources import RESOURCES


def of_plugin(name: str, **options: Any) -> dict[str, Any]:
    """An entry of `pluginConfig`."""
    return {"name": name, "args": options}


OTHER = {
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
                of_plugin(
                    "NodeResourcesFit",
                    scoringStrategy={
                        "type": "RequestedToCapacityRatio",
                        "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 5}],
                        "requestedToCapacityRatio": {
                            "shape": [{"utilization": 0, "score": 2}, {"utilization": 70, "score": 10}]
                        },
                    },
                ),
                of_plugin("InterPodAffinity", hardPodAffinityWeight=40, ignorePreferredTermsOfExistingPods=True),
                of_plugin(
                    "PodTopologySpread",
                    defaultingType="List",
                    defaultConstraints=[
                        {"maxSkew": 2, "topologyKey": mixed.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                    ],
                ),
                of_plugin("NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "example.com/gpu"}]),
            ],
        }
    ]
}
"""A configuration that differs from the default one wherever these pods would notice."""


@pytest.fixture
def cluster(api: Api) -> Api:
    """Fifty unlike nodes."""
    for thing in [*mixed.surroundings(), *mixed.nodes()]:
        api.create(thing)
    return api


@pytest.mark.parametrize(
    ("seed", "configuration"), [(1, {}), (2, OTHER)], ids=["by the default configuration", "by another configuration"]
)
def test_two_hundred_unlike_pods_go_where_kube_scheduler_puts_them(
    control_plane: ControlPlane, cluster: Api, seed: int, configuration: dict[str, Any]
) -> None:
    """One after another; a pod that is refused is deleted, so that it does not come back later.

    The node chosen is among our best, as kube-scheduler takes one of the best by chance, and messages are equal.
    """
    core, wrong, counts = Ours(configuration), [], {"placed": 0, "refused": 0, "held back": 0}
    around = lists(cluster, [kind for kind in RESOURCES if kind != "Pod"])
    control_plane.scheduler(configuration)
    for manifest in mixed.pods(seed):
        before = around + b"\n" + lists(cluster, ["Pod"])
        pod = cluster.create(manifest)
        theirs = cluster.wait_for(pod, decided, f"a decision about {key(pod)}")
        ours = core.about(pod, before)
        found = disagreement(theirs, ours)
        if found:
            wrong.append(f"{key(pod)}: {found}")
        if theirs["spec"].get("nodeName"):
            counts["placed"] += 1
        else:
            counts["held back" if ours["preEnqueue"] else "refused"] += 1
            cluster.delete(theirs)
    assert wrong == []
    assert all(count >= 10 for count in counts.values()), counts
