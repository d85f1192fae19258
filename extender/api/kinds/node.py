"""Nodes: taints, capacity, images, conditions."""

from msgspec import field

from extender.api.kinds.meta import Condition, Int64, KubernetesObject, KubernetesStruct, ResourceList


class Taint(KubernetesStruct, frozen=True, kw_only=True):
    """A taint of a node; effect NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def text(self) -> str:
        """The taint as text, such as `dedicated=db:NoSchedule`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class NodePodPreemptionPolicy(KubernetesStruct, frozen=True, kw_only=True):
    """The preemption on a node; a resize preempts no pods there if `disable_resize_preemption` names an owner."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = field(default="", name="providerID")
    pod_preemption_policy: NodePodPreemptionPolicy | None = None

    @property
    def disables_resize_preemption(self) -> bool:
        """Whether a pod on the node may not preempt others for its resize."""
        return self.pod_preemption_policy is not None and bool(self.pod_preemption_policy.disable_resize_preemption)


class ContainerImage(KubernetesStruct, frozen=True, kw_only=True):
    """An image on a node with all its names; size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSystemInfo(KubernetesStruct, frozen=True, kw_only=True):
    """The software of a node. No built-in plugin reads it; nodes of one pool share it."""

    architecture: str = ""
    operating_system: str = ""
    os_image: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    container_runtime_version: str = ""


class NodeStatus(KubernetesStruct, frozen=True, kw_only=True):
    """The status of a node."""

    capacity: ResourceList = field(default_factory=dict)
    allocatable: ResourceList = field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubernetesObject, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
