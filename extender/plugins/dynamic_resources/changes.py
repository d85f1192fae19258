"""What may make a pod schedulable that had to wait for devices. Source: B125."""

from collections.abc import Sequence

from extender.cluster.pods import PodQuery
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.objects.devices import ResourceClaim
from extender.plugins.dynamic_resources.claims import claim_name


def registrations() -> Sequence[Registration]:
    """Source: B125."""
    changed = Action.ADD | Action.UPDATE
    node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
    return (
        Registration(Resource.NODE, node),
        Registration(Resource.RESOURCE_CLAIM, changed, _after_claim_change),
        Registration(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, _after_pod_change),
        Registration(Resource.DEVICE_CLASS, changed),
        Registration(Resource.RESOURCE_SLICE, changed),
    )


def _after_claim_change(pod: PodQuery, change: Change) -> Hint:
    """A pod whose other claims are not in order is woken too; `pre_enqueue` keeps it out then."""
    old: ResourceClaim | None = change.old
    new: ResourceClaim = change.new
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return Hint.QUEUE
    names = [claim_name(pod.pod, entry)[0] for entry in pod.spec.resource_claims]
    if new.metadata.namespace != pod.namespace or new.metadata.name not in names:
        return Hint.SKIP
    return Hint.SKIP if old is not None and old.status == new.status else Hint.QUEUE


def _after_pod_change(pod: PodQuery, change: Change) -> Hint:
    """Whether the claims are in order is asked again by `pre_enqueue`."""
    return Hint.QUEUE if change.new.metadata.uid == pod.pod.metadata.uid else Hint.SKIP
