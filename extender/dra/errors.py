"""Errors of the allocator; their texts are upstream's."""


class AllocationError(Exception):
    """A claim, a class or a slice is invalid; the scheduling attempt ends."""


class AllocationTimeoutError(AllocationError):
    """The search for an allocation exceeded its timeout."""


class NodeAllocationError(Exception):
    """The devices of one node are invalid; other nodes may still fit."""
