"""Nodes: their labels and taints, and what they have to give."""

from datetime import datetime

from msgspec import field

from extender.objects.meta import Condition, KubernetesObject
from extender.objects.record import Int64, Record, ResourceList


class Taint(Record, frozen=True, kw_only=True):
    """What keeps pods off a node; effect NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Record, frozen=True, kw_only=True):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")
    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = field(default=(), name="podCIDRs")


class ContainerImage(Record, frozen=True, kw_only=True):
    """An image on the node under all its names; size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(Record, frozen=True, kw_only=True):
    """A volume attached to the node."""

    name: str = ""
    device_path: str = ""


class NodeStatus(Record, frozen=True, kw_only=True):
    """What a node has."""

    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    volumes_in_use: tuple[str, ...] = ()


class Node(KubernetesObject, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
