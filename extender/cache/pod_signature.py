"""Pod signatures: the parts of a pod that matter for scheduling, shared by all equal pods.

Pods made from one template differ only in name, uid and timestamps, and in their scheduling group if they are members
of gangs. Their common parts, with everything derived from them, form one `PodSignature`. Plugins use it to cache the
values that they compile from a pod. A `SpecClass` has the pods whose specs are equal except for amounts of resources:
the pods of two Jobs often differ in labels and requested amounts, but most plugin results depend on neither.
"""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from extender.api.kinds.affinity import Toleration
from extender.api.kinds.meta import OwnerReference, ResourceList
from extender.api.kinds.pod import Container, Pod, PodSpec, ResourceRequirements
from extender.api.requests import (
    DEFAULT_POD_RESOURCES_OPTIONS,
    PodResourcesOptions,
    assigned_pod_nonzero_requests,
    incoming_pod_requests,
    pod_requests,
)
from extender.basics.byte_lru import ByteLRU
from extender.basics.memo import Memo
from extender.cache.pod_affinity import PodAffinityTerms, compile_pod_affinity_terms
from extender.cache.tables.host_ports import HostPort, get_host_ports
from extender.cache.tables.symbols import Symbols
from extender.cache.tables.volume_uses import VolumeUses, collect_volume_uses
from extender.config.feature_gates import FeatureGates

_MAX_CLASS_BYTES = 32 << 20
"""Limit of the memory of the spec classes, in bytes. It is enough for 5,000 classes with keys of 600 bytes."""

_ZERO = "0"

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def fingerprint(value: object) -> bytes:
    """Encode *value* as bytes. Two values of one type have equal bytes if and only if the values are equal."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # a quantity written as a number beyond 64 bits
        return repr(value).encode()


class SpecClass(Memo):
    """A class of pods whose specs are equal except for amounts of resources. It caches values for these pods.

    The values must depend only on the parts of the spec that are equal in the class. The names of the requested
    resources are equal. The pods can be on different nodes.
    """

    __slots__ = ()


def _estimate_class_bytes(key: bytes) -> int:
    """Return an estimate of the memory of the spec class with this key, with the values that plugins cache in it."""
    return 4096 + 4 * len(key)


class SpecClassCache:
    """The spec classes of one cluster that were used last."""

    def __init__(self) -> None:
        self._classes: ByteLRU[SpecClass] = ByteLRU(_MAX_CLASS_BYTES, _estimate_class_bytes)

    def get(self, spec: PodSpec) -> SpecClass:
        """Return the class of *spec*. The caller must pass a spec without a node name."""
        return self._classes.get_or_create(fingerprint(zero_amounts(spec)), lambda _: SpecClass())

    def clear(self) -> None:
        """Forget all classes."""
        self._classes = ByteLRU(_MAX_CLASS_BYTES, _estimate_class_bytes)


def zero_amounts(spec: PodSpec) -> PodSpec:
    """Return *spec* with every amount of a resource set to 0."""
    return replace(
        spec,
        containers=tuple(map(_zero_container, spec.containers)),
        init_containers=tuple(map(_zero_container, spec.init_containers)),
        overhead=_zero_resource_list(spec.overhead),
        resources=None if spec.resources is None else _zero_resources(spec.resources),
    )


def _zero_container(container: Container) -> Container:
    return replace(container, resources=_zero_resources(container.resources))


def _zero_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return replace(
        resources, requests=_zero_resource_list(resources.requests), limits=_zero_resource_list(resources.limits)
    )


def _zero_resource_list(amounts: ResourceList) -> ResourceList:
    return dict.fromkeys(amounts, _ZERO)


_MAX_RECENT_BYTES = 16 << 20
"""Limit of the memory of recently used signatures, in bytes. It is enough for 1,180 signatures with keys of 500 bytes.

A recently used signature stays in memory even if no pod has it, because the next pod often has it.
"""


class PodSignature(Memo):
    """The parts of a pod that matter for scheduling, and values derived from them.

    Attributes:
        representative_pod: one of the pods with this signature. Only its namespace, labels, owner references,
            spec (without node name and scheduling group) and resource status are equal in all these pods.
        spec: the spec without node name and scheduling group.
        pod_labels: the namespace and the labels, interned in `Symbols`.
        namespace, labels: the pod's namespace and labels.
        priority: the pod's priority, 0 if unset.
        byte_count: the size of the encoded parts, in bytes.
    """

    def __init__(
        self,
        pod: Pod,
        symbols: Symbols,
        options: PodResourcesOptions,
        spec_classes: SpecClassCache,
        byte_count: int,
    ) -> None:
        super().__init__()
        self.byte_count = byte_count
        self.representative_pod = pod
        self.spec: PodSpec = pod.spec
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.pod_labels = symbols.intern_pod_labels(self.namespace, self.labels)
        self.priority = pod.spec.priority or 0
        self._symbols = symbols
        self._requests: tuple[tuple[int, int], ...] = ()
        self._assigned_requests: tuple[tuple[int, int], ...] = ()
        self._options = options
        self._spec_classes = spec_classes

    def forget_values(self) -> None:
        """Drop the cached values."""
        self._memo.clear()
        self.__dict__.pop("spec_class", None)

    @cached_property
    def spec_class(self) -> SpecClass:
        """The class of all specs that differ from this spec only in amounts of resources."""
        return self._spec_classes.get(self.spec)

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """The pod's tolerations."""
        return self.spec.tolerations

    @cached_property
    def controller(self) -> OwnerReference | None:
        """The owner reference of the pod's controller, if any."""
        return self.representative_pod.metadata.controller

    @cached_property
    def assigned_amounts(self) -> Mapping[str, int]:
        """The amounts that the pod adds to its node's requested resources, by name, without zeros.

        Source: component-helpers/resource/helpers.go, PodRequests, determineEffectiveRequests (1.36).
        """
        return _drop_zeros(pod_requests(self.representative_pod, self._options))

    @property
    def assigned_requests(self) -> tuple[tuple[int, int], ...]:
        """The pairs of a resource id and an amount of `assigned_amounts`, without resources that no node has had."""
        if len(self._assigned_requests) < len(self.assigned_amounts):  # a node may have the others by now
            self._assigned_requests = self._find_ids(self.assigned_amounts)
        return self._assigned_requests

    @cached_property
    def assigned_nonzero_requests(self) -> tuple[int, int]:
        """The milli-CPU and bytes of memory that the pod adds to its node, with defaults for unset requests.

        Source: pkg/scheduler/framework/types.go, NodeInfo;
        pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
        resourceAllocationScorer.calculateNodeAllocatableRequest (1.36).
        """
        return assigned_pod_nonzero_requests(self.representative_pod, self._options)

    @cached_property
    def requested_amounts(self) -> Mapping[str, int]:
        """The amounts that must be free on a node for the pod, by name, without zeros.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, computePodResourceRequest, fitsRequest (1.36).
        """
        return _drop_zeros(incoming_pod_requests(self.representative_pod))

    @property
    def requests(self) -> tuple[tuple[int, int], ...]:
        """The pairs of a resource id and an amount of `requested_amounts`, without resources that no node has had."""
        if len(self._requests) < len(self.requested_amounts):  # a node may have the others by now
            self._requests = self._find_ids(self.requested_amounts)
        return self._requests

    @property
    def has_unknown_resources(self) -> bool:
        """Whether the pod requests resources that no node has had until now."""
        return len(self.requests) < len(self.requested_amounts)

    def _find_ids(self, amounts: Mapping[str, int]) -> tuple[tuple[int, int], ...]:
        ids = ((self._symbols.resources.get(name), amount) for name, amount in amounts.items())
        return tuple((resource_id, amount) for resource_id, amount in ids if resource_id is not None)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Host ports of sidecars and app containers. Source: pkg/scheduler/util/utils.go, GetHostPorts (1.36)."""
        return get_host_ports(self.representative_pod)

    @cached_property
    def volume_uses(self) -> VolumeUses:
        """The claims and disks that the pod's volumes use.

        Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go,
        VolumeRestrictions.PreFilter, isVolumeConflict (1.36).
        """
        return collect_volume_uses(self.representative_pod)

    @cached_property
    def uses_node_allocatable_claims(self) -> bool:
        """Whether the pod takes node resources through claims and the feature gate is on.

        Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
        """
        claim_statuses = self.representative_pod.status.node_allocatable_resource_claim_statuses
        return self._options.dra_node_allocatable and bool(claim_statuses)

    @cached_property
    def pod_affinity_terms(self) -> PodAffinityTerms:
        """The compiled inter-pod affinity and anti-affinity."""
        return compile_pod_affinity_terms(self.representative_pod)


def _drop_zeros(amounts: Mapping[str, int]) -> Mapping[str, int]:
    return MappingProxyType({name: amount for name, amount in amounts.items() if amount})


def _make_signature_key(pod: Pod) -> bytes:
    """Return the same bytes for two pods if and only if they have the same signature."""
    meta, status = pod.metadata, pod.status
    resource_status: object = None
    # An infeasible resize changes the requests of a container without a status, too.
    conditions = [
        (condition.type, condition.status, condition.reason)
        for condition in status.conditions
        if condition.type.startswith("PodResize")
    ]
    if (
        conditions
        or status.container_statuses
        or status.init_container_statuses
        or status.resources
        or status.allocated_resources
    ):
        resource_status = (
            status.container_statuses,
            status.init_container_statuses,
            status.resize,
            status.resources,
            status.allocated_resources,
            conditions,
        )
    claim_statuses = status.node_allocatable_resource_claim_statuses
    return fingerprint((meta.namespace, meta.labels, meta.owner_references, pod.spec, resource_status, claim_statuses))


def _has_same_signature(pod: Pod, other: Pod) -> bool:
    """Return whether two pods with the same spec are known to have the same signature."""
    meta, other_meta = pod.metadata, other.metadata
    return (
        meta.namespace == other_meta.namespace
        and meta.labels == other_meta.labels
        and meta.owner_references == other_meta.owner_references
        and pod.status == other.status
    )


def _estimate_signature_bytes(key: bytes) -> int:
    """Return an estimate of the memory of the signature with this key, with the values that plugins cache in it."""
    return 4096 + 20 * len(key)


class SignatureCache:
    """The signatures of the pods of one cluster, pending and assigned."""

    def __init__(self, symbols: Symbols, options: PodResourcesOptions = DEFAULT_POD_RESOURCES_OPTIONS) -> None:
        self.symbols = symbols
        self._options = options
        self._signatures: WeakValueDictionary[bytes, PodSignature] = WeakValueDictionary()
        self._recent_signatures: ByteLRU[PodSignature] = ByteLRU(_MAX_RECENT_BYTES, _estimate_signature_bytes)
        self._last_lookup: tuple[Pod, PodSignature] | None = None
        self._spec_classes = SpecClassCache()

    def get_signature(self, pod: Pod) -> PodSignature:
        """Return the signature of *pod*; its node name and scheduling group are ignored."""
        if self._last_lookup is not None:
            last_pod, signature = self._last_lookup
            if last_pod is pod:  # a pod is assumed right after it was scheduled
                return signature
            if last_pod.spec is pod.spec and _has_same_signature(last_pod, pod):
                self._last_lookup = pod, signature
                return signature
        signature = self._get_or_create(pod)
        if not pod.spec.node_name:
            self._last_lookup = pod, signature
        return signature

    def _get_or_create(self, pod: Pod) -> PodSignature:
        if pod.spec.node_name or pod.spec.scheduling_group is not None:
            pod = replace(pod, spec=replace(pod.spec, node_name="", scheduling_group=None))
        return self._recent_signatures.get_or_create(_make_signature_key(pod), lambda key: self._intern(key, pod))

    def _intern(self, key: bytes, pod: Pod) -> PodSignature:
        """Return the signature of the existing pods with *key*, or create the one of *pod*.

        The pod must have neither a node name nor a scheduling group.
        """
        signature = self._signatures.get(key)
        if signature is None:
            signature = PodSignature(pod, self.symbols, self._options, self._spec_classes, len(key))
            self._signatures[key] = signature
        return signature

    def forget_values(self) -> None:
        """Drop the values that are cached by pod signature, by spec class or in `symbols`."""
        self.symbols.forget_values()
        self._spec_classes.clear()
        for signature in list(self._signatures.values()):
            signature.forget_values()

    def deduplicate(self, pod: Pod) -> tuple[Pod, PodSignature]:
        """Return a pod equal to *pod* that shares parts with the earlier pods of its signature, and the signature."""
        signature = self.get_signature(pod)
        representative, meta, status = signature.representative_pod, pod.metadata, pod.status
        shared_pod = replace(
            pod,
            metadata=replace(
                meta,
                namespace=signature.namespace,
                labels=signature.labels,
                owner_references=representative.metadata.owner_references,
            ),
            spec=replace(signature.spec, node_name=pod.spec.node_name, scheduling_group=pod.spec.scheduling_group),
            status=replace(
                status,
                container_statuses=representative.status.container_statuses,
                init_container_statuses=representative.status.init_container_statuses,
            ),
        )
        return shared_pod, signature


def make_pod_resources_options(gates: FeatureGates) -> PodResourcesOptions:
    """Return the options for computing a pod's resources under *gates*.

    Source: component-helpers/resource/helpers.go, PodRequests, determineEffectiveRequests;
    pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
    """
    return PodResourcesOptions(
        use_status_resources="InPlacePodVerticalScaling" in gates,
        pod_level_resources="PodLevelResources" in gates,
        in_place_pod_level_resize="InPlacePodLevelResourcesVerticalScaling" in gates,
        dra_node_allocatable="DRANodeAllocatableResources" in gates,
        maximum_of_sums=gates.release.takes_maximum_of_resize_sums,
    )
