"""The types of the Policy API.

Source: kube-scheduler/config/v1/types.go, Policy, LegacyExtender; pkg/scheduler/framework/plugins/legacy_registry.go,
validatePredicate (1.21).
"""

import msgspec

from extender.api.kinds.meta import Int32, Int64
from extender.config.model import Extender

KIND = "Policy"
API_VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")


class ServiceAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAffinity`: node labels whose values must be equal for all pods of a service.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, ServiceAffinity.Filter (1.21).
    """

    labels: tuple[str, ...] = ()


class LabelsPresence(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelsPresence`: labels that a node must have or must not have.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Filter (1.21).
    """

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a predicate. A valid argument has exactly one field."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A requested predicate."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `serviceAntiAffinity`: a node label. The pods of a service are spread across the label's values.

    Source: pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go,
    ServiceAffinity.updateNodeScoresForLabel (1.21).
    """

    label: str = ""


class LabelPreference(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `labelPreference`: a label that nodes should have or should not have.

    Source: pkg/scheduler/framework/plugins/nodelabel/node_label.go, NodeLabel.Score (1.21).
    """

    label: str = ""
    presence: bool = False


class UtilizationShapePoint(msgspec.Struct, frozen=True, rename="camel"):
    """A point of the function from utilization (0 to 100) to score (0 to 10).

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    utilization: Int32 = 0
    score: Int32 = 0


class ResourceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A resource with its weight; 0 means 1.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    name: str = ""
    weight: Int64 = 0


class RequestedToCapacityRatioArguments(msgspec.Struct, frozen=True, rename="camel"):
    """The argument `requestedToCapacityRatioArguments`: a function from utilization to score, and the resources.

    Source: pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
    buildRequestedToCapacityRatioScorerFunction (1.21).
    """

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(msgspec.Struct, frozen=True, rename="camel"):
    """The argument of a priority. A valid argument has exactly one field."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """A requested priority with its weight."""

    name: str = ""
    weight: Int64 = 0
    argument: PriorityArgument | None = None


class LegacyExtender(Extender, frozen=True, rename="camel"):
    """An HTTP extender of a Policy: `enableHTTPS` is named `enableHttps`, and `httpTimeout` is in nanoseconds.

    Source: kube-scheduler/config/v1/types.go, LegacyExtender (1.21).
    """

    enable_https: bool = False
    http_timeout: Int64 = 0

    def __post_init__(self) -> None:
        """Leave a timeout of 0 unchanged: its default is in seconds."""


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """A Policy: the predicates, the priorities and the HTTP extenders of a scheduler.

    Attributes:
        predicates: None means the predicates of the default provider. An empty list means the mandatory ones only.
        priorities: None means the priorities of the default provider. An empty list means no priorities.
        hard_pod_affinity_symmetric_weight: 1 to 100; 0 means unset, which is treated as 1.
        always_check_all_predicates: evaluate all predicates instead of stopping at the first failure.

    Source: pkg/scheduler/factory.go, Configurator.createFromConfig (1.21); pkg/scheduler/factory/factory.go,
    configFactory.CreateFromKeys (1.14); pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins
    (1.21).
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False
