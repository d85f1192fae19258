"""What scheduling sees of a pod, compiled once for all pods that are alike.

Pods made from one template differ in name, uid and times only. Their common part, with everything derived from it, is
one `Shape`;
plugins keep what they compile of a pod on its shape.
"""

from functools import cached_property

from msgspec.structs import replace

from extender.basics.memo import Memo
from extender.cluster.affinity import PodAffinityTerms, compile_affinity
from extender.cluster.identity import identity
from extender.cluster.kin import Kin, Kinship
from extender.cluster.ports import HostPort, host_ports
from extender.cluster.vocabulary import PodClass, Vocabulary
from extender.cluster.volume_uses import VolumeUses, volume_uses
from extender.objects.affinity import Toleration
from extender.objects.meta import OwnerReference
from extender.objects.pod import Pod, PodSpec
from extender.objects.requests import BY_DEFAULT, Counting, incoming_requests, placed_nonzero_requests, placed_requests

_MOST = 1 << 16


class Shape(Memo):
    """The scheduling-relevant part of a pod.

    Attributes:
        pod: one pod of this shape; only its namespace, labels, controller, spec (without node name) and what
            its status says of resources count.
        number: the id of its class of labels in `Vocabulary.pod_classes`.
        namespace, labels: of the pod.
        priority: 0 if the spec has none.
    """

    def __init__(self, pod: Pod, vocabulary: Vocabulary, counting: Counting, kinship: Kinship) -> None:
        super().__init__()
        self.pod = pod
        self.spec: PodSpec = pod.spec
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.number = vocabulary.pod_classes.id(PodClass(self.namespace, tuple(sorted(self.labels.items()))))
        self.priority = pod.spec.priority or 0
        self._resources = vocabulary.resources
        self._counting = counting
        self._kinship = kinship

    @cached_property
    def kin(self) -> Kin:
        """What it has in common with shapes whose specs differ in amounts of resources only."""
        return self._kinship.of(self.spec)

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """The pod's tolerations."""
        return self.spec.tolerations

    @cached_property
    def controller(self) -> OwnerReference | None:
        """The owner that controls the pod, if any."""
        return next((owner for owner in self.pod.metadata.owner_references if owner.controller), None)

    @cached_property
    def taken(self) -> tuple[tuple[int, int], ...]:
        """What the pod takes of the node it is on: (resource id, amount) pairs, zeros left out. Source: A112, A113."""
        return self._by_id(placed_requests(self.pod, self._counting))

    @cached_property
    def nonzero(self) -> tuple[int, int]:
        """As `taken`, milli-CPU and bytes of memory only, with the defaults for containers that ask for none.

        Source: A110, B036.
        """
        return placed_nonzero_requests(self.pod, self._counting)

    @cached_property
    def asked(self) -> tuple[tuple[int, int], ...]:
        """What a node must have free for the pod: (resource id, amount) pairs, zeros left out. Source: B030, B031."""
        return self._by_id(incoming_requests(self.pod))

    def _by_id(self, amounts: dict[str, int]) -> tuple[tuple[int, int], ...]:
        return tuple((self._resources.id(name), amount) for name, amount in amounts.items() if amount)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Host ports of sidecars and app containers. Source: B027."""
        return host_ports(self.pod)

    @cached_property
    def volumes(self) -> VolumeUses:
        """Claims and disks among the pod's volumes. Source: B080, B081."""
        return volume_uses(self.pod)

    @cached_property
    def takes_by_claims(self) -> bool:
        """Whether the pod takes node resources through claims, and those count. Source: B122."""
        return self._counting.devices and bool(self.pod.status.node_allocatable_resource_claim_statuses)

    @cached_property
    def affinity(self) -> PodAffinityTerms:
        """Inter-pod affinity and anti-affinity, compiled."""
        return compile_affinity(self.pod)


def _alike(pod: Pod) -> bytes:
    """The bytes that two pods share if and only if they have one shape."""
    meta, status = pod.metadata, pod.status
    resized: object = None
    if status.container_statuses or status.init_container_statuses or status.resources or status.allocated_resources:
        conditions = [(c.type, c.status, c.reason) for c in status.conditions if c.type.startswith("PodResize")]
        resized = (
            status.container_statuses,
            status.init_container_statuses,
            status.resize,
            status.resources,
            status.allocated_resources,
            conditions,
        )
    by_claims = status.node_allocatable_resource_claim_statuses
    return identity((meta.namespace, meta.labels, meta.owner_references, pod.spec, resized, by_claims))


class Shapes:
    """The shapes of one cluster. Source of `Shape` for every pod, placed or waiting."""

    __slots__ = ("_counting", "_kinship", "_last", "_shapes", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, counting: Counting = BY_DEFAULT) -> None:
        self.vocabulary = vocabulary
        self._counting = counting
        self._shapes: dict[bytes, Shape] = {}
        self._last: tuple[Pod, Shape] | None = None
        self._kinship = Kinship()

    def of(self, pod: Pod) -> Shape:
        """The shape of *pod*; its node name does not count."""
        last = self._last
        if last is not None and last[0] is pod:  # who was decided about is placed next
            return last[1]
        shape = self._of(pod)
        self._last = pod, shape
        return shape

    def _of(self, pod: Pod) -> Shape:
        bare = pod
        if pod.spec.node_name:
            bare = replace(pod, spec=replace(pod.spec, node_name=""))
        alike = _alike(bare)
        shape = self._shapes.get(alike)
        if shape is None:
            if len(self._shapes) >= _MOST:
                for stale in list(self._shapes)[: _MOST // 2]:
                    del self._shapes[stale]
            shape = self._shapes[alike] = Shape(bare, self.vocabulary, self._counting, self._kinship)
        return shape

    def lean(self, pod: Pod) -> Pod:
        """An equal of *pod* that shares what it has in common with all pods of its shape."""
        shape = self.of(pod)
        alike, meta, status = shape.pod, pod.metadata, pod.status
        return replace(
            pod,
            metadata=replace(
                meta,
                namespace=shape.namespace,
                labels=shape.labels,
                owner_references=alike.metadata.owner_references,
            ),
            spec=replace(shape.spec, node_name=pod.spec.node_name),
            status=replace(
                status,
                container_statuses=alike.status.container_statuses,
                init_container_statuses=alike.status.init_container_statuses,
            ),
        )
