"""NodeResourcesFit rejects nodes without the requested resources, and scores nodes by their resource utilization.

**Rejects** a node that has its maximum number of pods (`Too many pods`), or fewer free resources than the pod requests
(`Insufficient cpu`). All reasons are reported. The free amount is the allocatable amount minus the requests of the
node's pods. Preemption may help, unless the allocatable amount is below the request. Requests of 0 are not checked. A
pod with a sidecar is rejected on all nodes if the gate SidecarContainers is off. If a device class backs an extended
resource that the node does not have itself, DynamicResources checks the resource.

**Scores** by `scoringStrategy.type`, over the resources in `scoringStrategy.resources` with their weights.
LeastAllocated prefers nodes with low utilization, MostAllocated nodes with high utilization. RequestedToCapacityRatio
applies a configured function of utilization. Containers without a request for cpu or memory count as 100m and 200Mi.
Pod-level requests and actual resources (in-place resize) of the incoming pod are ignored. Scores are not normalized. If
a node does not have an extended resource itself, the DRA devices that back the resource are scored.

**Requeued on** a pod that is deleted or scaled down, a node that is added or whose allocatable resources grow, or a
device class that is added or changed.

**Options** `ignoredResources`, `ignoredResourceGroups`: extended resources that are not checked, by name or by the
prefix before the slash. `scoringStrategy`: `type`, `resources` (a list of `name` and `weight`, 1 to 100; cpu and memory
if it is empty) and `requestedToCapacityRatio.shape` (points of `utilization`, 0 to 100, and `score`, 0 to 10).

Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_NodeResourcesFitArgs;
pkg/scheduler/apis/config/types_pluginargs.go, NodeResourcesFitArgs (1.36).
"""

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

import msgspec

from extender.api.kinds.devices import DeviceClass
from extender.api.label_syntax import unsupported_value, validate_qualified_name
from extender.api.requests import (
    PodResourcesOptions,
    fit_score_requests,
    is_dra_extended_resource,
    is_extended_resource,
    pod_requests,
)
from extender.cache.device_classes import get_class_by_resource
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.symbols import EPHEMERAL_STORAGE, Symbols
from extender.config.errors import FieldError, child, item
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error
from extender.framework.events import ClusterEventWithHint
from extender.framework.extension_points import DependsOn, PreFilterResult, PreScoreResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.pod_group_points import PodGroupAssignments, PodGroupInfo
from extender.framework.status import Code, Reason, Rejection, error_status, reject_all, unresolvable_status
from extender.plugin_parts.device_backed_resources import DeviceBackedResourceBuilder
from extender.plugin_parts.function_shape import UtilizationShapePoint, validate_function_shape
from extender.plugin_parts.scored_resources import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    ScoredResource,
    apply_resource_defaults,
    build_scored_resources,
    list_amounts,
    validate_weights,
)
from extender.plugins.node_resources_fit.filter import (
    ResourceRequest,
    find_rejections,
    find_rejections_of_pod_on_node,
    fits_request,
    get_insufficient_reasons,
)
from extender.plugins.node_resources_fit.queueing_hints import FitQueueingHints
from extender.plugins.node_resources_fit.scoring_strategies import (
    Strategy,
    build_requested_to_capacity_ratio_strategy,
    compute_placement_score,
    score_least_allocated,
    score_most_allocated,
)

_REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"
_STRATEGIES: Final[Mapping[str, Strategy]] = {
    "LeastAllocated": score_least_allocated,
    "MostAllocated": score_most_allocated,
}
_STRATEGY_TYPES: Final = (*_STRATEGIES, _REQUESTED_TO_CAPACITY_RATIO)

_NO_STATE: Final = Reason('error reading "PreFilterNodeResourcesFit" from cycleState: not found', Code.ERROR)
_NO_SIDECARS: Final = PreFilterResult(
    unresolvable_status("Pod has a restartable init container and the SidecarContainers feature is disabled")
)
_NO_RESOURCES: Final = PreScoreResult(status=error_status("resources not found"))


class RequestedToCapacityRatioParam(msgspec.Struct, frozen=True, rename="camel"):
    """Parameters of RequestedToCapacityRatio.

    Attributes:
        shape: the points of the function from utilization to score.
    """

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """The scoring strategy.

    Attributes:
        type: LeastAllocated, MostAllocated or RequestedToCapacityRatio.
        resources: the resources that count, with their weights.
        requested_to_capacity_ratio: the parameters of this type; not allowed for other types.
    """

    type: str = ""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def validate(self, path: str) -> Iterator[FieldError]:
        """Yield an error for an unknown type, a weight out of range, or wrong parameters.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs,
        validateFunctionShape (1.36).
        """
        if self.type not in _STRATEGY_TYPES:
            yield FieldError(child(path, "type"), unsupported_value(self.type, _STRATEGY_TYPES))
        yield from validate_weights(self.resources, path)
        ratio_param, field_path = self.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
        if self.type != _REQUESTED_TO_CAPACITY_RATIO:
            if ratio_param is not None:
                yield FieldError(field_path, f"Forbidden: must be nil when type is not {_REQUESTED_TO_CAPACITY_RATIO}")
        elif ratio_param is None:
            yield FieldError(
                field_path, f"Required value: must be specified when type is {_REQUESTED_TO_CAPACITY_RATIO}"
            )
        else:
            yield from validate_function_shape(ratio_param.shape, child(field_path, "shape"))


class NodeResourcesFitArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:  # noqa: ARG003
        """Return *raw* with the defaults of the strategy, its resources and their weights.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs (1.36).
        """
        strategy = raw.get("scoringStrategy")
        if strategy is None:
            strategy = {"type": "LeastAllocated"}
        if not isinstance(strategy, Mapping):
            return raw
        resources = apply_resource_defaults(strategy.get("resources"))
        return {**raw, "scoringStrategy": {**strategy, "resources": resources}}

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:  # noqa: ARG002
        """Return an error for each invalid resource name or group, and the errors of the strategy.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateNodeResourcesFitArgs,
        validateFunctionShape (1.36).
        """
        errors: list[FieldError] = []
        for index, name in enumerate(self.ignored_resources):
            field_path = item(child(path, "ignoredResources"), index)
            errors += [make_invalid_value_error(field_path, name, text) for text in validate_qualified_name(name)]
        for index, group in enumerate(self.ignored_resource_groups):
            field_path = item(child(path, "ignoredResourceGroups"), index)
            if "/" in group:
                errors.append(make_invalid_value_error(field_path, group, "resource group name can't contain '/'"))
            errors += [make_invalid_value_error(field_path, group, text) for text in validate_qualified_name(group)]
        errors += self.scoring_strategy.validate(child(path, "scoringStrategy"))
        return errors


class NodeResourcesFit:
    """Compares requests with free resources. Results are cached by the pod's requests."""

    name: ClassVar[str] = "NodeResourcesFit"
    options = NodeResourcesFitArgs
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE_AND_PODS

    def __init__(self, args: PluginArgs[NodeResourcesFitArgs]) -> None:
        options, gates = args.options, args.gates
        strategy = options.scoring_strategy
        self._ignored_resources = frozenset(options.ignored_resources)
        self._ignored_resource_groups = frozenset(options.ignored_resource_groups)
        self._resource_specs = strategy.resources
        ratio_param = strategy.requested_to_capacity_ratio
        self._strategy = (
            build_requested_to_capacity_ratio_strategy(ratio_param.shape) if ratio_param else _STRATEGIES[strategy.type]
        )
        self._pod_level_resources = "PodLevelResources" in gates
        self._sidecars = "SidecarContainers" in gates
        self._dra_extended_resource = "DRAExtendedResource" in gates
        self._resize_preemption = "InPlacePodVerticalScalingSchedulerPreemption" in gates
        self._queueing_hints = FitQueueingHints(gates)
        self._device_backed_resource_builder = DeviceBackedResourceBuilder(args, self._resource_specs)
        class_kinds = (DeviceClass,) if self._dra_extended_resource else ()
        self.read_kinds = (*class_kinds, *self._device_backed_resource_builder.read_kinds)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may free resources.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, Fit.EventsToRegister (1.36).
        """
        return self._queueing_hints.events_to_register()

    # -- filter

    def _get_requests_to_check(self, pod: PodInfo) -> tuple[tuple[str, int], ...]:
        """Return the requests to check as pairs of resource name and amount. Amounts of 0 are omitted.

        Amounts that are negative after an overflow are omitted too.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, computePodResourceRequest, fitsRequest (1.36).
        """

        def compute() -> tuple[tuple[str, int], ...]:
            amounts = pod_requests(
                pod.pod, PodResourcesOptions(use_status_resources=False, pod_level_resources=self._pod_level_resources)
            )
            return tuple(
                (name, amount) for name, amount in amounts.items() if amount > 0 and not self._is_ignored(name)
            )

        return pod.signature.get_or_create((self, "requests_to_check"), compute)

    def _is_ignored(self, name: str) -> bool:
        is_listed = name in self._ignored_resources or name.split("/", 1)[0] in self._ignored_resource_groups
        return is_listed and is_extended_resource(name)

    def _may_be_delegated_to_dra(self, pod: PodInfo) -> bool:
        """Return whether devices may back a requested resource. Then the result also depends on device classes."""
        return self._dra_extended_resource and pod.signature.get_or_create(
            (self, "may_be_delegated_to_dra"),
            lambda: any(is_dra_extended_resource(name) for name, _ in self._get_requests_to_check(pod)),
        )

    def _is_on_node(self, pod: PodInfo) -> bool:
        """Return whether the pod is on a node already and is scheduled again because of its resize."""
        return self._resize_preemption and bool(pod.spec.node_name)

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Compute the requests to check.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, computePodResourceRequest,
        shouldDelegateResourceToDRA (1.36).
        """
        if not self._sidecars and any(container.is_sidecar for container in pod.spec.init_containers):
            return _NO_SIDECARS

        if self._may_be_delegated_to_dra(pod):
            return self._make_requests(pod, snapshot.symbols, get_class_by_resource(snapshot))
        if pod.signature.has_unknown_resources:
            return self._make_requests(pod, snapshot.symbols)

        def compute() -> PreFilterResult:
            return self._make_requests(pod, snapshot.symbols)

        return pod.signature.get_or_create(
            (self, "pre_filter"),
            lambda: snapshot.symbols.get_or_create((self, "pre_filter", self._get_requests_to_check(pod)), compute),
        )

    def _make_requests(self, pod: PodInfo, symbols: Symbols, delegated: Container[str] = ()) -> PreFilterResult:
        """Return the requests to check as the state; *delegated* has the resources that devices back."""
        requests = []
        for position, (name, amount) in enumerate(self._get_requests_to_check(pod), start=EPHEMERAL_STORAGE + 1):
            resource_id = symbols.get_resource_id(name)
            reasons = get_insufficient_reasons(name, resource_id if resource_id <= EPHEMERAL_STORAGE else position)
            requests.append(ResourceRequest(name, resource_id, amount, *reasons, name in delegated))
        return PreFilterResult(state=tuple(requests))

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the result is independent of device classes, and of resources that nodes may have later.

        The result of Filter is the same: a node that has such a resource later is a changed node.
        """
        return not self._may_be_delegated_to_dra(pod) and not pod.signature.has_unknown_resources

    def filter_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the requests to check; None if devices may back a request: results then depend on device classes."""
        is_cacheable = not self._may_be_delegated_to_dra(pod) and not self._is_on_node(pod)
        return self._get_requests_to_check(pod) if is_cacheable else None

    def filter(self, pod: PodInfo, nodes: NodeView, state: Any) -> Sequence[Rejection]:
        """Reject nodes with insufficient resources.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest, Fit.Filter (1.36).
        """
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        requests = cast("tuple[ResourceRequest, ...]", state)
        if self._is_on_node(pod):
            return find_rejections_of_pod_on_node(pod, requests, nodes)
        if nodes.single_row is not None and fits_request(requests, nodes, nodes.single_row):
            return ()
        return find_rejections(requests, nodes)

    # -- score

    def _get_score_requests(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the pod's request for each scored resource, in the order of the options.

        Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
        resourceAllocationScorer.calculateNodeAllocatableRequest;
        pkg/scheduler/framework/plugins/noderesources/fit.go, NewFit (1.36).
        """
        return pod.signature.get_or_create(
            (self, "requests"), lambda: list_amounts(self._resource_specs, fit_score_requests(pod.pod))
        )

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return the pod's requests; None if devices may back a request: scores then depend on other objects."""
        return pod.signature.get_or_create(
            (self, "key"), lambda: self._device_backed_resource_builder.make_cache_key(self._get_score_requests(pod))
        )

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:
        """Store the resources to score as the state. Score is never skipped.

        Source: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
        resourceAllocationScorer.calculateNodeAllocatableRequest, resourceAllocationScorer.score (1.36).
        """

        def compute() -> PreScoreResult:
            if not self._resource_specs:
                return _NO_RESOURCES
            resource_symbols = nodes.snapshot.symbols.resources
            return PreScoreResult(
                state=build_scored_resources(
                    self._resource_specs, self._get_score_requests(pod), resource_symbols, nonzero=True
                )
            )

        return pod.signature.get_or_create(
            (self, "pre_score"),
            lambda: nodes.snapshot.symbols.get_or_create((self, self._get_score_requests(pod)), compute),
        )

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the pod's spec."""
        return True

    def score(self, pod: PodInfo, nodes: NodeView, state: Any) -> IntArray:
        """Return a score from 0 to 100 for each node. If PreScore is disabled, compute its state here.

        Source: pkg/scheduler/framework/plugins/noderesources/least_allocated.go, leastResourceScorer;
        pkg/scheduler/framework/plugins/noderesources/most_allocated.go, mostResourceScorer;
        pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go,
        buildRequestedToCapacityRatioScorerFunction;
        pkg/scheduler/framework/plugins/noderesources/resource_allocation.go,
        resourceAllocationScorer.calculateDRAResourceTotals (1.36).
        """
        if state is None:
            state = self.pre_score(pod, nodes).state
        resources = cast("tuple[ScoredResource, ...]", state)
        if self.score_cache_key(pod) is None:
            resources = self._device_backed_resource_builder.replace_device_backed(resources, nodes.snapshot)
        return self._strategy(resources, nodes)

    def score_placement(
        self,
        pod_group: PodGroupInfo,  # noqa: ARG002  the extension point's signature
        snapshot: Snapshot,
        assignments: PodGroupAssignments,
    ) -> int:
        """Return how much of the placement's resources is requested with the group's pods, from 0 to 100.

        Source: pkg/scheduler/framework/plugins/noderesources/fit.go, Fit.ScorePlacement (1.36).
        """
        pod_requests = map(self._get_score_requests, assignments.assigned_pods)
        return compute_placement_score(self._resource_specs, pod_requests, assignments.placement, snapshot)
