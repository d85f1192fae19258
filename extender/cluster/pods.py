"""Pods as the tables hold them: placed on a node, or asked about."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from extender.cluster.shape import Shape
from extender.objects.pod import Pod, PodSpec


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPod:
    """A pod on a node, as the API server or an assumption says.

    Attributes:
        uid: identifies the pod.
        pod: the object, its spec shared with all pods of its shape (so `pod.spec.node_name` is empty: see `node_name`).
        shape: what scheduling sees of it.
        node_name: where it is.
        terminating: it is being deleted.
        assumed: placed by us, not yet confirmed by the API server.
    """

    uid: str
    pod: Pod
    shape: Shape
    node_name: str
    terminating: bool
    assumed: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.pod.key

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.shape.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.shape.labels

    @property
    def priority(self) -> int:
        """The pod's priority, 0 if unset."""
        return self.shape.priority

    @property
    def start_time(self) -> float | None:
        """`status.startTime` in seconds since 1970, or None if it has not started."""
        started = self.pod.status.start_time
        return started.timestamp() if started else None


@dataclass(frozen=True, slots=True, eq=False)
class PodQuery:
    """A pod that asks for a node.

    Attributes:
        pod: the object as it came.
        shape: what scheduling sees of it.
    """

    pod: Pod
    shape: Shape

    @property
    def uid(self) -> str:
        """Identifies the pod; `namespace/name` if the object has no uid."""
        return self.pod.metadata.uid or self.pod.key

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.pod.key

    @property
    def spec(self) -> PodSpec:
        """The pod's spec."""
        return self.pod.spec

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.shape.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.shape.labels

    @property
    def priority(self) -> int:
        """The pod's priority, 0 if unset."""
        return self.shape.priority


def placed(pod: Pod, shape: Shape, node_name: str, *, assumed: bool = False) -> PlacedPod:
    """*pod* as it stands on *node_name*; what it shares with its shape is kept once."""
    meta = pod.metadata
    slim = msgspec.structs.replace(pod, spec=shape.spec)
    return PlacedPod(meta.uid or pod.key, slim, shape, node_name, meta.deletion_timestamp is not None, assumed)
