"""Stable codes for kube-scheduler's reasons, for programs. A text may change with a release, a code does not.

Codes are never renamed and never removed within a major version of the schema. New reasons get new codes.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final, Self


class ReasonCode(StrEnum):
    """The code of a reason why a pod was not placed. The string after each code says what it means."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """Return the member with its code as value and its meaning as attribute."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    NODE_UNSCHEDULABLE = "NodeUnschedulable", "The node is cordoned."
    UNTOLERATED_TAINT = "UntoleratedTaint", "The node has a taint that the pod does not tolerate."
    NODE_AFFINITY_MISMATCH = "NodeAffinityMismatch", "The node does not match the pod's node selector or affinity."
    ENFORCED_NODE_AFFINITY_MISMATCH = (
        "EnforcedNodeAffinityMismatch",
        "The node does not match the affinity that the scheduler's configuration adds.",
    )
    NODE_AFFINITY_CONFLICT = "NodeAffinityConflict", "The names in the pod's node affinity exclude each other."
    NODE_NAME_MISMATCH = "NodeNameMismatch", "The pod names another node."
    RESIZE_PREEMPTION_DISABLED = (
        "ResizePreemptionDisabled",
        "The node does not allow that a pod preempts others for its resize.",
    )
    RESIZE_PENDING = "ResizePending", "The resize fits the node, and waits for the kubelet."
    NODE_LABEL_MISMATCH = "NodeLabelMismatch", "The node lacks labels that a Policy requires."
    NODE_FEATURES_MISSING = "NodeFeaturesMissing", "The node does not declare a feature that the pod requires."
    NODE_NOT_READY = "NodeNotReady", "A condition of the node excludes it, in releases up to 1.22."
    NODE_PRESSURE = "NodePressure", "The node is short of memory, disk or process numbers, in releases up to 1.22."
    NODE_EXCLUDED = "NodeExcluded", "A plugin selected other nodes before Filter ran."
    NO_NODES = "NoNodes", "The cluster has no nodes."
    HOST_PORTS_IN_USE = "HostPortsInUse", "A host port of the pod is in use on the node."
    TOO_MANY_PODS = "TooManyPods", "The node has as many pods as it allows."
    INSUFFICIENT_CPU = "InsufficientCPU", "The node has too little CPU left."
    INSUFFICIENT_MEMORY = "InsufficientMemory", "The node has too little memory left."
    INSUFFICIENT_EPHEMERAL_STORAGE = "InsufficientEphemeralStorage", "The node has too little local storage left."
    INSUFFICIENT_HUGE_PAGES = "InsufficientHugePages", "The node has too few huge pages left."
    INSUFFICIENT_EXTENDED_RESOURCE = "InsufficientExtendedResource", "The node has too little of another resource left."
    INSUFFICIENT_GPUS = "InsufficientGPUs", "No GPUs of the node are free enough for the pod's shares."
    GPUS_FOR_CLAIMS = "GPUsForClaims", "The node's GPUs are for pods with resource claims."
    GPUS_USED_WITHOUT_CLAIMS = "GPUsUsedWithoutClaims", "Pods without resource claims use the node's GPUs."
    GPU_MODEL_MISMATCH = "GPUModelMismatch", "The node has another GPU model."
    INVALID_GPU_REQUEST = "InvalidGPURequest", "The pod's request for GPU shares is invalid."
    POD_AFFINITY_MISMATCH = "PodAffinityMismatch", "No pod for the pod's affinity is in the node's topology domain."
    POD_ANTI_AFFINITY_CONFLICT = "PodAntiAffinityConflict", "The pod's anti-affinity excludes a pod in the domain."
    EXISTING_POD_ANTI_AFFINITY_CONFLICT = (
        "ExistingPodAntiAffinityConflict",
        "The anti-affinity of a pod in the domain excludes the pod.",
    )
    TOPOLOGY_SPREAD_SKEW = "TopologySpreadSkew", "The pod would make the skew of its spread constraint too large."
    TOPOLOGY_SPREAD_LABEL_MISSING = "TopologySpreadLabelMissing", "The node lacks the label of a spread constraint."
    SERVICE_AFFINITY_MISMATCH = "ServiceAffinityMismatch", "A Policy's service affinity excludes the node."
    INVALID_SELECTOR = "InvalidSelector", "A selector of the pod, or its affinity, is invalid."
    DISK_CONFLICT = "DiskConflict", "Another pod on the node uses the same disk."
    CLAIM_IN_USE = "ClaimInUse", "Another pod uses the ReadWriteOncePod claim."
    CLAIM_NOT_FOUND = "ClaimNotFound", "A PersistentVolumeClaim of the pod does not exist."
    CLAIM_LOST = "ClaimLost", "A PersistentVolumeClaim of the pod lost its volume."
    CLAIM_TERMINATING = "ClaimTerminating", "A PersistentVolumeClaim of the pod is being deleted."
    CLAIM_NOT_OWNED = "ClaimNotOwned", "A claim with the name of the pod's own claim belongs to another object."
    CLAIM_UNBOUND = "ClaimUnbound", "A claim that is bound at once has no volume yet."
    VOLUME_NOT_FOUND = "VolumeNotFound", "A claim is bound to a volume that does not exist."
    VOLUME_NODE_AFFINITY_CONFLICT = "VolumeNodeAffinityConflict", "A volume of the pod cannot be reached from the node."
    VOLUME_ZONE_CONFLICT = "VolumeZoneConflict", "A volume of the pod is in another zone or region."
    NO_VOLUME_TO_BIND = "NoVolumeToBind", "No volume fits a claim on the node, and none can be provisioned there."
    INSUFFICIENT_STORAGE_CAPACITY = "InsufficientStorageCapacity", "The storage has too little capacity for the node."
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound", "The storage class of a claim does not exist or names no mode."
    TOO_MANY_VOLUMES = "TooManyVolumes", "The node can attach no more volumes of this kind."
    CSI_DRIVER_MISSING = "CSIDriverMissing", "The node has no CSI driver for a volume."
    DEVICES_UNAVAILABLE = "DevicesUnavailable", "The node has no free devices for the pod's ResourceClaims."
    DEVICES_ON_OTHER_NODE = "DevicesOnOtherNode", "The allocated devices of a ResourceClaim are not on the node."
    DEVICE_ALLOCATION_FAILED = "DeviceAllocationFailed", "The search for devices failed on the node."
    DEVICE_CLASS_NOT_FOUND = "DeviceClassNotFound", "The device class of a request does not exist."
    RESOURCE_CLAIM_NOT_FOUND = "ResourceClaimNotFound", "A ResourceClaim of the pod does not exist yet."
    RESOURCE_CLAIM_TERMINATING = "ResourceClaimTerminating", "A ResourceClaim of the pod is being deleted."
    RESOURCE_CLAIM_NOT_OWNED = "ResourceClaimNotOwned", "A generated ResourceClaim belongs to another object."
    RESOURCE_CLAIM_INVALID = "ResourceClaimInvalid", "A ResourceClaim has a request that is not supported."
    RESOURCE_CLAIM_IN_USE = ("ResourceClaimInUse", "Another pod uses the ResourceClaim on the node.")
    RESOURCE_CLAIM_PENDING = "ResourceClaimPending", "A ResourceClaim is being allocated or deallocated."
    SCHEDULING_GATED = "SchedulingGated", "The pod has scheduling gates."
    POD_GROUP_NOT_FOUND = "PodGroupNotFound", "The pod's group does not exist."
    POD_GROUP_INCOMPLETE = "PodGroupIncomplete", "Too few pods of the group exist."
    POD_GROUP_UNSCHEDULABLE = "PodGroupUnschedulable", "Too few pods of the group can be placed together."
    PERMIT_TIMEOUT = "PermitTimeout", "The pod waited too long for a Permit plugin."
    PREEMPTION_IN_PROGRESS = "PreemptionInProgress", "The pod waits until its victims have gone."
    PREEMPTION_NOT_ALLOWED = "PreemptionNotAllowed", "The pod may not preempt others."
    PREEMPTION_NOT_HELPFUL = "PreemptionNotHelpful", "Evictions of pods with a lower priority do not help."
    SIDECARS_DISABLED = ("SidecarsDisabled", "The release does not allow restartable init containers.")
    NO_PROFILE = "NoProfile", "The configuration has no profile for the pod's scheduler name."
    ERROR = "Error", "A plugin failed; the text has its message."
    OTHER = "Other", "A reason without a code of its own, such as that of a plugin from another package."


_EXACT: Final = {
    "node(s) were unschedulable": ReasonCode.NODE_UNSCHEDULABLE,
    "node(s) had untolerated taint(s)": ReasonCode.UNTOLERATED_TAINT,
    "node(s) didn't match Pod's node affinity/selector": ReasonCode.NODE_AFFINITY_MISMATCH,
    "node(s) didn't match scheduler-enforced node affinity": ReasonCode.ENFORCED_NODE_AFFINITY_MISMATCH,
    "pod affinity terms conflict": ReasonCode.NODE_AFFINITY_CONFLICT,
    "node(s) didn't match the requested node name": ReasonCode.NODE_NAME_MISMATCH,
    "pod assigned to different node": ReasonCode.NODE_NAME_MISMATCH,
    "node had resize preemption disabled": ReasonCode.RESIZE_PREEMPTION_DISABLED,
    "pod resize fits, waiting for Kubelet actuation": ReasonCode.RESIZE_PENDING,
    "node(s) didn't have the requested labels": ReasonCode.NODE_LABEL_MISMATCH,
    "node(s) didn't match Pod's required features": ReasonCode.NODE_FEATURES_MISSING,
    "node(s) were not ready": ReasonCode.NODE_NOT_READY,
    "node(s) had unavailable network": ReasonCode.NODE_NOT_READY,
    "node(s) were out of disk space": ReasonCode.NODE_NOT_READY,
    "no nodes available to schedule pods": ReasonCode.NO_NODES,
    "node(s) didn't have free ports for the requested pod ports": ReasonCode.HOST_PORTS_IN_USE,
    "Too many pods": ReasonCode.TOO_MANY_PODS,
    "Insufficient cpu": ReasonCode.INSUFFICIENT_CPU,
    "Insufficient memory": ReasonCode.INSUFFICIENT_MEMORY,
    "Insufficient ephemeral-storage": ReasonCode.INSUFFICIENT_EPHEMERAL_STORAGE,
    "node(s) didn't have enough free GPUs": ReasonCode.INSUFFICIENT_GPUS,
    "node(s) had GPUs that only resource claims can allocate": ReasonCode.GPUS_FOR_CLAIMS,
    "node(s) had GPUs for resource claims that pods without claims use": ReasonCode.GPUS_USED_WITHOUT_CLAIMS,
    "node(s) didn't have the requested GPU model": ReasonCode.GPU_MODEL_MISMATCH,
    "node(s) didn't match pod affinity rules": ReasonCode.POD_AFFINITY_MISMATCH,
    "node(s) didn't match pod anti-affinity rules": ReasonCode.POD_ANTI_AFFINITY_CONFLICT,
    "node(s) didn't satisfy existing pods anti-affinity rules": ReasonCode.EXISTING_POD_ANTI_AFFINITY_CONFLICT,
    "node(s) didn't match pod topology spread constraints": ReasonCode.TOPOLOGY_SPREAD_SKEW,
    "node(s) didn't match pod topology spread constraints (missing required label)": (
        ReasonCode.TOPOLOGY_SPREAD_LABEL_MISSING
    ),
    "node(s) didn't match service affinity": ReasonCode.SERVICE_AFFINITY_MISMATCH,
    "node(s) had no available disk": ReasonCode.DISK_CONFLICT,
    "pod has unbound immediate PersistentVolumeClaims": ReasonCode.CLAIM_UNBOUND,
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": ReasonCode.VOLUME_NOT_FOUND,
    "node(s) didn't match PersistentVolume's node affinity": ReasonCode.VOLUME_NODE_AFFINITY_CONFLICT,
    "node(s) had no available volume zone": ReasonCode.VOLUME_ZONE_CONFLICT,
    "node(s) didn't find available persistent volumes to bind": ReasonCode.NO_VOLUME_TO_BIND,
    "node(s) did not have enough free storage": ReasonCode.INSUFFICIENT_STORAGE_CAPACITY,
    "node(s) exceed max volume count": ReasonCode.TOO_MANY_VOLUMES,
    "cannot allocate all claims": ReasonCode.DEVICES_UNAVAILABLE,
    "cannot schedule extended resource claim": ReasonCode.DEVICES_UNAVAILABLE,
    "cannot fit resource": ReasonCode.DEVICES_UNAVAILABLE,
    "resourceclaim not available on the node": ReasonCode.DEVICES_ON_OTHER_NODE,
}

_PATTERNS: Final = (
    (r"waiting for scheduling gates:|^not enqueued because of SchedulingGates:", ReasonCode.SCHEDULING_GATED),
    (r"waiting for minCount pods from a gang to appear|tree to meet quorum", ReasonCode.POD_GROUP_INCOMPLETE),
    (
        r"waiting for pods's pod group|podgroup\S* \S+ not found|pod group for pod not found"
        r"|failed to build hierarchy snapshot",
        ReasonCode.POD_GROUP_NOT_FOUND,
    ),
    (
        r"pod group is unschedulable|minCount \(\w+\)|waiting for minCount pods from a gang to be scheduled"
        r"|workload aware preemption is|no pods from pod group are assigned",
        ReasonCode.POD_GROUP_UNSCHEDULABLE,
    ),
    (r"rejected due to timeout after waiting", ReasonCode.PERMIT_TIMEOUT),
    (r"waiting for the preemption for this pod|is waiting for preemption", ReasonCode.PREEMPTION_IN_PROGRESS),
    (r"^(preemption: )?not eligible due to", ReasonCode.PREEMPTION_NOT_ALLOWED),
    (r"^preemption: ", ReasonCode.PREEMPTION_NOT_HELPFUL),
    (r"^still not schedulable|^No preemption victims found", ReasonCode.PREEMPTION_NOT_HELPFUL),
    (r"^Insufficient hugepages-", ReasonCode.INSUFFICIENT_HUGE_PAGES),
    (r"^Insufficient ", ReasonCode.INSUFFICIENT_EXTENDED_RESOURCE),
    (r"^node\(s\) had (memory|disk|pid) pressure$", ReasonCode.NODE_PRESSURE),
    (r"^node\(s\) didn't satisfy plugin\(s\) \[", ReasonCode.NODE_EXCLUDED),
    (r"ReadWriteOncePod access mode already in-use", ReasonCode.CLAIM_IN_USE),
    (r"persistentvolumeclaim \S+ not found|waiting for ephemeral volume controller", ReasonCode.CLAIM_NOT_FOUND),
    (r"persistentvolumeclaim \S+ bound to non-existent persistentvolume", ReasonCode.CLAIM_LOST),
    (r"persistentvolumeclaim \S+ is being deleted", ReasonCode.CLAIM_TERMINATING),
    (r"^PVC \S+ was not created for pod", ReasonCode.CLAIM_NOT_OWNED),
    (r"^pod has unbound immediate PersistentVolumeClaims", ReasonCode.CLAIM_UNBOUND),
    (r"persistentvolume \S+ not found|PersistentVolumeClaim had no name", ReasonCode.VOLUME_NOT_FOUND),
    (r"storageclass\S* \S+ not found|VolumeBindingMode not set",
     ReasonCode.STORAGE_CLASS_NOT_FOUND),
    (r"CSI driver is not installed on the node$", ReasonCode.CSI_DRIVER_MISSING),
    (r"could not find ResourceClaim|ResourceClaim not created yet|resourceclaim\S* \S+ not found",
     ReasonCode.RESOURCE_CLAIM_NOT_FOUND),
    (r"^resourceclaim \S+ is being deleted", ReasonCode.RESOURCE_CLAIM_TERMINATING),
    (r"^ResourceClaim \S+ was not created for Pod", ReasonCode.RESOURCE_CLAIM_NOT_OWNED),
    (r"in the process of being allocated|ResourceClaims? (completed|unreserved)|ResourceClaims completed",
     ReasonCode.RESOURCE_CLAIM_PENDING),
    (r"unknown request type|unsupported request type|has subrequests, but|none of the supported fields are set",
     ReasonCode.RESOURCE_CLAIM_INVALID),
    (r"device class \S+ does not exist", ReasonCode.DEVICE_CLASS_NOT_FOUND),
    (r"^node allocatable resource claim ", ReasonCode.RESOURCE_CLAIM_IN_USE),
    (r"^claim \S+: |^pod level request for ", ReasonCode.DEVICES_UNAVAILABLE),
    (r"^annotations \S+ and \S+ must|^resource \S+ must be a multiple|^a pod (can request|that requests several GPUs)",
     ReasonCode.INVALID_GPU_REQUEST),
    (r"timed out trying to allocate devices|invalid resource pools", ReasonCode.DEVICE_ALLOCATION_FAILED),
    (r"^(failed to )?pars(e|ing) pod: ", ReasonCode.INVALID_SELECTOR),
    (r"restartable init container and the SidecarContainers feature is disabled", ReasonCode.SIDECARS_DISABLED),
    (r"^waits for scheduler |^no profile has the pod's scheduler name", ReasonCode.NO_PROFILE),
)  # fmt: skip


@lru_cache(maxsize=4096)
def get_reason_code(text: str, *, is_error: bool = False) -> ReasonCode:
    """Return the code of a reason.

    Args:
        text: kube-scheduler's text.
        is_error: whether the status of the reason is `Error`; a text without a code is then `Error`, else `Other`.
    """
    code = _EXACT.get(text)
    if code is not None:
        return code
    for pattern, pattern_code in _PATTERNS:  # compiled by re at the first text without an exact code
        if re.search(pattern, text):
            return pattern_code
    return ReasonCode.ERROR if is_error else ReasonCode.OTHER


def list_reason_codes(texts: Iterable[str], *, is_error: bool = False) -> list[str]:
    """Return the codes of reasons in their order, one for each text."""
    return [get_reason_code(text, is_error=is_error).value for text in texts]
