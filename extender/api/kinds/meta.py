"""Types that all kinds share: their base class, scalar types, metadata, owner references, conditions, selectors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import field

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A 32-bit integer; a number out of range fails to decode, as in Go."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer; a number out of range fails to decode, as in Go."""

RawQuantity = str | int | float
"""An unparsed resource quantity; see `quantity.parse`."""

ResourceList = dict[str, RawQuantity]
"""Unparsed quantities by resource name."""

MAX_LEVELS: Final = 500
"""Levels of JSON that can be decoded at each depth of Python's stack. The API server allows 10,000."""


def check_levels(value: Any) -> None:
    """Check the depth of a field of type `Any`. The depth that can be decoded depends on the version of Python.

    Raises:
        ValueError: *value* has more than `MAX_LEVELS` levels.
    """
    values = [value]
    for _ in range(MAX_LEVELS + 1):
        containers = [item for item in values if isinstance(item, dict | list)]
        if not containers:
            return
        values = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    raise ValueError(f"nested more than {MAX_LEVELS} levels deep")


class KubernetesStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all kinds: frozen, with the JSON field names of Kubernetes. Absent fields have Go's zero value.

    Decoded objects have no reference cycles, so the garbage collector does not track them.
    """


class OwnerReference(KubernetesStruct, frozen=True, kw_only=True):
    """A reference to an owner; at most one owner is the controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(KubernetesStruct, frozen=True, kw_only=True):
    """The metadata of an object. Timestamps are timezone-aware."""

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

    @property
    def key(self) -> str:
        """`namespace/name`, or the name of an object without a namespace.

        Source: client-go/tools/cache/store.go, MetaNamespaceKeyFunc (1.36).
        """
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The reference to the object's controller; None without one."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def is_controlled_by(self, uid: str) -> bool:
        """Return whether the object with *uid* is the controller."""
        return self.controller is not None and self.controller.uid == uid


class LabelSelectorRequirement(KubernetesStruct, frozen=True, kw_only=True):
    """A requirement on a label; operator In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(KubernetesStruct, frozen=True, kw_only=True):
    """A label selector: all requirements must hold.

    An empty selector matches all objects. An absent selector matches none.
    """

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(KubernetesStruct, frozen=True, kw_only=True):
    """A condition in the status of an object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: datetime | None = None


def find_condition(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    """Return the first condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == condition_type), None)


class ObjectReference(KubernetesStruct, frozen=True, kw_only=True):
    """A reference to an object, such as the claim of a bound volume."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class KubernetesObject(KubernetesStruct, frozen=True, kw_only=True):
    """The base class of the top-level kinds, such as Pod: objects with metadata."""

    metadata: ObjectMeta = ObjectMeta()
