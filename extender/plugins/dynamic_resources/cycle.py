"""What one cycle knows of a pod's claims: noted by PreFilter, filled in by Filter, used up by Reserve and PreBind."""

from dataclasses import dataclass, field
from typing import NamedTuple

from extender.allocation.allocator import Asked, Solution
from extender.allocation.extended import Served
from extender.cluster.arrays import BoolArray
from extender.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.objects.matching import NodeTerms
from extender.objects.pod import NodeAllocatableResourceClaimStatus, Pod

UNNAMED = "<extended-resources>"
"""The name of a claim for extended resources that exists only here."""


class Variant(NamedTuple):
    """What has to be allocated on some of the nodes.

    Attributes:
        asked: the claims.
        served: what serves extended resources there; None if nothing has to.
        special: the claim for extended resources as it is there; None if there is none.
    """

    asked: Asked
    served: Served | None
    special: ResourceClaim | None


@dataclass(slots=True, eq=False)
class Cycle:
    """The notes of one cycle.

    Attributes:
        pod: whose claims.
        moment: of the cluster's objects; notes of another moment are of no use.
        claims: in the order of the pod, last the one for extended resources, if any.
        consumers: by claim, for whom it is reserved.
        special: the claim for extended resources, if any.
        selectors: by claim, the nodes an allocation can be used on; None: any, or there is no allocation.
        failed: by claim, whether its devices cannot be bound, so that another allocation is needed.
        extended: extended resources the pod asks for, by name.
        backed: those of them that a device class serves.
        variants: by the resources that devices have to serve.
        found: the devices by node.
        taken: by node, what the pod takes of the node's own resources through its claims, if anything.
        unavailable: by claim, the rows it keeps out.
        results: of Reserve: by claim, what is about to be written.
        reserved: of Reserve: what was allocated on the node.
        bound: of PreBind: by claim, the claim as it is once that is written.
    """

    pod: Pod
    moment: object
    claims: list[ResourceClaim]
    consumers: list[ResourceClaimConsumerReference] = field(default_factory=list)
    special: ResourceClaim | None = None
    selectors: tuple[NodeTerms | None, ...] = ()
    failed: tuple[bool, ...] = ()
    extended: tuple[str, ...] = ()
    backed: frozenset[str] = frozenset()
    variants: dict[frozenset[str], Variant] = field(default_factory=dict)
    found: dict[str, tuple[Solution, Variant]] = field(default_factory=dict)
    taken: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] = field(default_factory=dict)
    unavailable: dict[int, BoolArray] = field(default_factory=dict)
    results: dict[int, AllocationResult] = field(default_factory=dict)
    reserved: Variant | None = None
    bound: dict[int, ResourceClaim] = field(default_factory=dict)

    @property
    def has_own(self) -> bool:
        """Whether the pod itself names claims."""
        return len(self.claims) > (self.special is not None)

    @property
    def to_allocate(self) -> list[int]:
        """The positions of claims without an allocation."""
        return [number for number, claim in enumerate(self.claims) if claim.status.allocation is None]

    @property
    def is_left_over(self) -> bool:
        """Whether the claim for extended resources is one of an earlier cycle."""
        return self.special is not None and self.special.metadata.name != UNNAMED
