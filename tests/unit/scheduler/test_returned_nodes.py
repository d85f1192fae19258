"""The scores of whole nodes that HTTP extenders returned, with the default plugins."""

from typing import Any

import pytest

from tests.build import make_node, make_pod
from tests.unit.client.scripted_server import Reply
from tests.unit.scheduler.builders import SchedulerHarness
from tests.unit.scheduler.extender_harness import FILTER, ExtenderHarness, filter_response, run_with_extenders

WEB = {"app": "web"}


@pytest.mark.parametrize(
    ("config", "node"),
    [(FILTER, "n2"), ({"filter_verb": "filter"}, "n1")],
    ids=["names", "whole nodes"],
)
def test_returned_nodes_have_no_pods_that_count_for_spreading_over_host_names(config: Any, node: str) -> None:
    """The larger node, which has a pod of the same application, wins only then.

    Source: pkg/scheduler/extender.go, HTTPExtender.Filter;
    pkg/scheduler/framework/plugins/podtopologyspread/scoring.go, PodTopologySpread.Score (1.37).
    """
    sizes = {"n1": "64", "n2": "8"}
    labels = {name: {"kubernetes.io/hostname": name} for name in sizes}
    allocatable = {name: {"cpu": cpu, "memory": "64Gi", "pods": "110"} for name, cpu in sizes.items()}
    harness = SchedulerHarness(
        *(make_node(name, labels=labels[name], allocatable=allocatable[name]) for name in sizes),
        make_pod("running", node="n1", labels=WEB),
    )
    constraint = {
        "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
    }  # fmt: skip
    pod = make_pod("new", labels=WEB, requests={"cpu": "4"}, spec={"topologySpreadConstraints": [constraint]})
    harness.create(pod)

    async def test(extender_harness: ExtenderHarness) -> None:
        items = [
            {"metadata": {"name": name, "labels": labels[name]}, "status": {"allocatable": allocatable[name]}}
            for name in sizes
        ]
        body = {**filter_response("n1", "n2"), "Nodes": {"items": items}}
        extender_harness.server.respond("POST /a/filter", Reply(body=body))
        await extender_harness.run_until_idle()

    run_with_extenders(harness, [config], test)
    assert harness.node_of(pod) == node
