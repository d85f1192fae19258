"""What all objects have in common: names, labels, owners, label selectors."""

from datetime import datetime

from msgspec import field

from extender.objects.record import Int64, Record


class OwnerReference(Record, frozen=True, kw_only=True):
    """An object that owns this one; at most one owner is the controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Record, frozen=True, kw_only=True):
    """Name, identity and labels of an object. Times are timezone-aware."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class LabelSelectorRequirement(Record, frozen=True, kw_only=True):
    """One condition on labels; operator In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Record, frozen=True, kw_only=True):
    """All conditions must hold; an empty selector matches everything, an absent one nothing."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Record, frozen=True, kw_only=True):
    """An observed condition in an object's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: datetime | None = None


class ObjectReference(Record, frozen=True, kw_only=True):
    """A reference to one object, such as the claim a volume is bound to."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class KubernetesObject(Record, frozen=True, kw_only=True):
    """A top-level object: anything with a kind of its own."""

    metadata: ObjectMeta = ObjectMeta()
