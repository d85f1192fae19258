"""A claim that nobody makes a volume for: the pod gives its node back when the time for binding is over."""

from typing import Final

from tests.controlplane import acts, events
from tests.controlplane.acts import a_claim, a_pod
from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane

CONFIGURATION: Final[dict[str, object]] = {
    "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 1}}]}]
}


def test_a_claim_that_is_not_bound_in_time_frees_its_node(control_plane: ControlPlane, api: Api) -> None:
    """Meanwhile the pod has the room; it is told why, and another pod gets it. Source: B099."""
    for thing in acts.things():
        if thing["kind"] == "StorageClass":
            api.create(thing)
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"capacity": room, "allocatable": room}
    api.create({"kind": "Node", "metadata": {"name": "alpha", "labels": {acts.HOST: "alpha"}}, "status": status})
    claim = api.create(a_claim("data", "nobody"))
    control_plane.ours(CONFIGURATION)
    late = api.create(a_pod("late", "3", on="alpha", **acts.mounting("data")))
    chosen = "volume.kubernetes.io/selected-node"
    api.wait_for(
        claim, lambda each: each["metadata"].get("annotations", {}).get(chosen) == "alpha", "the node's choice"
    )
    other = api.create(a_pod("other", "3", on="alpha"))
    refused = events.wait_for(api, "FailedScheduling", {"default/other", "default/late"})
    api.wait_for(other, lambda each: bool(each["spec"].get("nodeName")), "binding of the other")
    assert "Insufficient cpu" in refused["default/other"][0]
    text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert refused["default/late"][0] == text
    assert not api.get("Pod", late["metadata"]["name"], "default")["spec"].get("nodeName")
