"""A claim without a provisioned volume: the pod releases its node when the binding times out."""

from typing import Final

from tests.controlplane import events, scheduling_scenario
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.scheduling_scenario import make_pod, make_volume_claim

CONFIGURATION: Final[dict[str, object]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 1}}]}]
}


def test_a_claim_that_is_not_bound_in_time_frees_the_node(control_plane: ControlPlane, api: ApiClient) -> None:
    """Until then the pod reserves the resources of the node; afterwards another pod gets them.

    Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.BindPodVolumes (1.36).
    """
    for obj in scheduling_scenario.make_cluster_objects():
        if obj["kind"] == "StorageClass":
            api.create(obj)
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": capacity, "allocatable": capacity}
    api.create(
        {"kind": "Node", "metadata": {"name": "alpha", "labels": {scheduling_scenario.HOST: "alpha"}}, "status": status}
    )
    claim = api.create(make_volume_claim("data", "nobody"))
    control_plane.start_extender(CONFIGURATION)
    late = api.create(make_pod("late", "3", node="alpha", **scheduling_scenario.volume_spec("data")))
    annotation = "volume.kubernetes.io/selected-node"
    api.wait_for(
        claim, lambda obj: obj["metadata"].get("annotations", {}).get(annotation) == "alpha", "the node's choice"
    )
    other = api.create(make_pod("other", "3", node="alpha"))
    notes = events.wait_for_notes(api, "FailedScheduling", {"default/other", "default/late"})
    api.wait_for(other, lambda obj: bool(obj["spec"].get("nodeName")), "binding of the other")
    assert "Insufficient cpu" in notes["default/other"][0]
    timeout_message = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert notes["default/late"][0] == timeout_message
    assert not api.get("Pod", late["metadata"]["name"], "default")["spec"].get("nodeName")
