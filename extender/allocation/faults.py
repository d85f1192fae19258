"""Why an allocation cannot even be tried; the texts are upstream's."""


class AllocationError(Exception):
    """Something is wrong with a claim, a class or a slice: the attempt ends."""


class AllocationTimeoutError(AllocationError):
    """The search took too long."""


class NodeUnfitError(Exception):
    """Something is wrong with what this node offers: others may still do."""
