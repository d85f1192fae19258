"""Pods with their signatures: `AssignedPodInfo` for pods on nodes, `PodInfo` for pods to schedule."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from extender.api.kinds.pod import Pod, PodSpec
from extender.cache.pod_signature import PodSignature


@dataclass(frozen=True, slots=True, eq=False)
class _PodWithSignature:
    """A pod with its signature, and what both kinds of pods read from them."""

    pod: Pod
    signature: PodSignature

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.pod.key

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.signature.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.signature.labels

    @property
    def priority(self) -> int:
        """The pod's priority, 0 if unset."""
        return self.signature.priority


@dataclass(frozen=True, slots=True, eq=False)
class AssignedPodInfo(_PodWithSignature):
    """A pod that is bound to a node or assumed on it.

    Attributes:
        uid: the pod's uid; `namespace/name` if the object has none.
        pod: the object. Pods with one signature share their spec, so `pod.spec.node_name` is empty: see `node_name`.
        signature: the signature of the pod.
        terminating: whether the pod is being deleted.
        assumed: whether the pod is assumed and not yet confirmed by the API server.
    """

    uid: str
    node_name: str
    terminating: bool
    assumed: bool = False

    @property
    def pod_with_node_name(self) -> Pod:
        """The object with `spec.node_name`."""
        return replace(self.pod, spec=replace(self.pod.spec, node_name=self.node_name))

    @property
    def start_time(self) -> float:
        """`status.startTime` in seconds since 1970; infinite, later than any other time, if the pod has not started."""
        start_time = self.pod.status.start_time
        return start_time.timestamp() if start_time else inf


@dataclass(frozen=True, slots=True, eq=False)
class PodInfo(_PodWithSignature):
    """A pod to schedule.

    Attributes:
        pod: the unmodified object.
        signature: the signature of the pod.
    """

    @property
    def uid(self) -> str:
        """The pod's uid; `namespace/name` if the object has none."""
        return self.pod.uid_or_key

    @property
    def spec(self) -> PodSpec:
        """The pod's spec."""
        return self.pod.spec


def make_assigned_pod_info(
    pod: Pod, signature: PodSignature, node_name: str, *, assumed: bool = False
) -> AssignedPodInfo:
    """Make the `AssignedPodInfo` of *pod* on *node_name*. Its pod shares the spec, or its parts, with the signature."""
    meta = pod.metadata
    group = pod.spec.scheduling_group
    spec = signature.spec if group is None else replace(signature.spec, scheduling_group=group)
    deduplicated_pod = replace(pod, spec=spec)
    terminating = meta.deletion_timestamp is not None
    return AssignedPodInfo(deduplicated_pod, signature, pod.uid_or_key, node_name, terminating, assumed)


def sum_requests(pods: Iterable[AssignedPodInfo], resource: str) -> int:
    """Return the amount of *resource* that *pods* request. Sums beyond int64 wrap around, as upstream's do."""
    total = sum(pod.signature.assigned_amounts.get(resource, 0) for pod in pods)
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)
