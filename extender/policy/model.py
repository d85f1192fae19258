"""A Policy as the rest of this room reads it: frozen, in the words of its own format. Source: C074 to C077."""

import msgspec

from extender.config.model import ManagedResource, TLSConfig
from extender.config.strict import Int32, Int64

KIND = "Policy"
API_VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")


class Labels(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAffinity`: labels that the pods of a service shall share. Source: C035."""

    labels: tuple[str, ...] = ()


class LabelsPresence(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelsPresence`: labels that a node must have, or must not have. Source: C034."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a predicate: one of the two."""

    service_affinity: Labels | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A predicate that is asked for."""

    name: str = ""
    argument: PredicateArgument | None = None


class Label(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAntiAffinity`: the label by whose values the pods of a service are spread. Source: C066."""

    label: str = ""


class LabelPreference(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelPreference`: a label that nodes should have, or should not have. Source: C065."""

    label: str = ""
    presence: bool = False


class ShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of a function from utilization (0 to 100) to score (0 to 10). Source: C058."""

    utilization: Int32 = 0
    score: Int32 = 0


class Resource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that counts, and how much; 0 counts as 1. Source: C058."""

    name: str = ""
    weight: Int64 = 0


class RequestedToCapacityRatioArguments(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `requestedToCapacityRatioArguments`. Source: C058."""

    shape: tuple[ShapePoint, ...] = ()
    resources: tuple[Resource, ...] = ()


class PriorityArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a priority: one of the three."""

    service_anti_affinity: Label | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A priority that is asked for, with its weight."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class LegacyExtender(msgspec.Struct, frozen=True, rename="camel"):
    """An HTTP extender as a Policy writes it: `enableHttps`, and `httpTimeout` in nanoseconds. Source: C075."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: TLSConfig | None = None
    http_timeout: Int64 = 0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A whole Policy.

    Attributes:
        predicates: None asks for those of the default provider, an empty list for the mandatory ones. Source: C013.
        priorities: None asks for those of the default provider, an empty list for none. Source: C013.
        extenders: in order.
        hard_pod_affinity_symmetric_weight: 1 to 100; 0 means not given, which counts as 1. Source: C097.
        always_check_all_predicates: a node is told all predicates it fails, not the first. Source: C018.
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False
