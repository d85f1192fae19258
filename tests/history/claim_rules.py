"""The rules of claims: the volumes and devices of a bound pod, and those that a pending pod can still get."""

from collections.abc import Iterator

from tests.history.cluster_state import (
    ClusterState,
    Object,
    allocated_devices,
    claim_keys,
    device_claim_keys,
    uid_of,
)
from tests.history.node_rules import Rejection, matches_node_selector, parse_quantity


def find_bound_claim_rejections(pod: Object, node: Object, state: ClusterState) -> Iterator[Rejection]:
    """Yield the rules on its claims that a pod breaks when it is bound to *node*.

    A volume claim is bound to a volume whose node affinity matches. A device claim is allocated on the node and
    reserved for the pod.
    """
    for key in claim_keys(pod):
        claim = state.find("PersistentVolumeClaim", key)
        volume = None if claim is None else state.find("PersistentVolume", claim["spec"].get("volumeName", ""))
        if volume is None:
            yield "volume", f"{key} is not bound to a volume"
        elif not _is_reachable(volume, node):
            yield "volume", f"{volume['metadata']['name']} of {key} is not on the node"
    for key in device_claim_keys(pod):
        device_claim = state.find("ResourceClaim", key)
        status = {} if device_claim is None else device_claim.get("status", {})
        if not status.get("allocation"):
            yield "device", f"{key} is not allocated"
            continue
        selector = status["allocation"].get("nodeSelector")
        if selector and not matches_node_selector(selector, node):
            yield "device", f"{key} is allocated on another node"
        if uid_of(pod) not in {consumer["uid"] for consumer in status.get("reservedFor") or ()}:
            yield "device", f"{key} is not reserved for the pod"


def find_shared_devices(key: str, claim: Object, state: ClusterState) -> Iterator[Rejection]:
    """Yield the devices of a ResourceClaim that are also allocated to another one."""
    devices = allocated_devices(claim)
    for other_key, other in state.objects["ResourceClaim"].items():
        if other_key != key:
            for device in set(devices) & set(allocated_devices(other)):
                yield "shared device", f"{'/'.join(device)} is allocated to {key} and {other_key}"
    for device in {device for device in devices if devices.count(device) > 1}:
        yield "shared device", f"{'/'.join(device)} is allocated twice to {key}"


def find_shared_volumes(key: str, claim: Object, state: ClusterState) -> Iterator[Rejection]:
    """Yield the volume of a PersistentVolumeClaim if another claim has it, too."""
    volume = claim["spec"].get("volumeName")
    for other_key, other in state.objects["PersistentVolumeClaim"].items():
        if volume and other_key != key and other["spec"].get("volumeName") == volume:
            yield "shared volume", f"{volume} is bound to {key} and {other_key}"


def can_get_claims(pod: Object, node: Object, state: ClusterState) -> bool:
    """Return whether the claims of a pending pod are bound on *node*, or can be.

    The function expects what the workload creates: at most one volume claim and one device claim per pod, and device
    requests without selectors.
    """
    return all(_can_get_volume(key, node, state) for key in claim_keys(pod)) and all(
        _can_get_devices(key, node, state) for key in device_claim_keys(pod)
    )


def _can_get_volume(key: str, node: Object, state: ClusterState) -> bool:
    claim = state.find("PersistentVolumeClaim", key)
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return False
    if name := claim["spec"].get("volumeName"):
        volume = state.find("PersistentVolume", name)
        return volume is not None and _is_reachable(volume, node)
    volumes = state.objects["PersistentVolume"].values()
    for volume in volumes:  # a volume that was bound in advance excludes all others
        if volume["spec"].get("claimRef", {}).get("uid") == uid_of(claim):
            return _is_reachable(volume, node)
    return any(
        not volume["spec"].get("claimRef")
        and not volume["metadata"].get("deletionTimestamp")
        and volume.get("status", {}).get("phase") == "Available"
        and volume["spec"].get("storageClassName") == claim["spec"].get("storageClassName")
        and parse_quantity(volume["spec"]["capacity"]["storage"])
        >= parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
        and _is_reachable(volume, node)
        for volume in volumes
    )


def _can_get_devices(key: str, node: Object, state: ClusterState) -> bool:
    claim = state.find("ResourceClaim", key)
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return False
    if allocation := claim.get("status", {}).get("allocation"):
        selector = allocation.get("nodeSelector")
        return not selector or matches_node_selector(selector, node)
    allocated = {device for other in state.objects["ResourceClaim"].values() for device in allocated_devices(other)}
    free = sum(
        (each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]) not in allocated
        for each in state.objects["ResourceSlice"].values()
        if each["spec"].get("nodeName") == node["metadata"]["name"]
        for device in each["spec"].get("devices") or ()
    )
    count = sum(request["exactly"].get("count", 1) for request in claim["spec"]["devices"]["requests"])
    return free >= count


def _is_reachable(volume: Object, node: Object) -> bool:
    required = volume["spec"].get("nodeAffinity", {}).get("required")
    return not required or matches_node_selector(required, node)
