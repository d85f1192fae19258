"""VolumeBinding allows only nodes where the pod's volumes are usable, and binds the pod's claims before the pod.

**Rejects** a pod in PreFilter if one of its claims is missing, lost, being deleted, owned by another pod, or unbound
with immediate binding. All rejections are unresolvable. Rejects a node for each of these reasons:

- `node(s) didn't match PersistentVolume's node affinity`: a bound volume is not usable there.
- `node(s) didn't find available persistent volumes to bind`: a claim with delayed binding has no matching volume and
  cannot be provisioned.
- `node(s) did not have enough free storage`: the storage capacity is too low to provision a claim.
- `node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)`: the volume of a bound claim does not
  exist.

Unbound claims are matched in order of size, smallest first, each with the smallest suitable volume of its class. The
remaining claims can be provisioned if their class has a provisioner and allows the node's topology. Storage capacity is
checked if the driver tracks it. The plugin skips pods without claims.

**Scores** nodes with the gate StorageCapacityScoring, which is on by default since 1.37, and otherwise no node. The
function `shape` maps the utilization of each storage class to a score. The utilization is that of the matched volumes.
If no volume matches, it is that of the storage pools to provision from. The node's score is the mean over the storage
classes.

**Binds.** Reserve assumes the volumes for the pod, so that no other pod gets them. PreBind writes the bindings to the
API server. All claims must be bound within `bindTimeoutSeconds`.

**Requeued on** a new or changed storage class, volume or claim of the pod, storage capacity that is added or grows, a
node that is added or relabelled, a node whose CSI migration changes, or a driver that stops tracking capacity.

**Options** `bindTimeoutSeconds`: 600. `shape`: points of `utilization`, 0 to 100, and `score`, 0 to 10, only with the
gate StorageCapacityScoring; by default 10 for empty and 0 for full storage.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.api.kinds.meta import Int64
from extender.api.kinds.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.config.errors import FieldError, child
from extender.config.feature_gates import FeatureGates
from extender.config.validation import make_invalid_value_error
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import PreBindPreFlightResult
from extender.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, QueueingHint
from extender.framework.extension_points import SKIP_SCORE, DependsOn, PreFilterResult, PreScoreResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Reason, Rejection, Status, error_status, reject_all
from extender.plugin_parts.function_shape import (
    UtilizationShapePoint,
    build_broken_linear_function,
    validate_function_shape,
)
from extender.plugins.volume_binding.bind_claims import PodVolumes, make_pod_volumes, plan_binding
from extender.plugins.volume_binding.pod_claims import get_pod_volume_claims
from extender.plugins.volume_binding.score import compute_capacity_scores
from extender.volumes.assume_cache import AssumeCache
from extender.volumes.claims import uses_claim
from extender.volumes.csi_migration import have_migrated_plugins_changed
from extender.volumes.find_pod_volumes import PodVolumeClaims, find_pod_volumes
from extender.volumes.volume_index import VolumeIndex, get_volume_size_limit

_STORAGE_CAPACITY_SCORING: Final = "StorageCapacityScoring"
_NODE_CONFLICT: Final = Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
_BIND_CONFLICT: Final = Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE)
_NOT_ENOUGH_SPACE: Final = Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE)
_NO_STATE: Final = Reason("not found", Code.ERROR)
_PV_NOT_EXIST: Final = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE
)


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of VolumeBinding.

    Attributes:
        bind_timeout_seconds: the timeout for binding claims.
        shape: the points of the function from utilization to score; None if its feature gate is off.
    """

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """Return *raw* without a null timeout, and with the default shape if it has no shape and the gate is on.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateVolumeBindingArgsWithOptions
        (1.36).
        """
        options = dict(raw)
        if options.get("bindTimeoutSeconds") is None:
            options.pop("bindTimeoutSeconds", None)
        if not options.get("shape") and _STORAGE_CAPACITY_SCORING in gates:
            options["shape"] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
        return options

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Return an error for a negative timeout, an invalid shape, or a shape without its gate.

        Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go, ValidateVolumeBindingArgsWithOptions
        (1.36).
        """
        errors: list[FieldError] = []
        if self.bind_timeout_seconds < 0:
            errors.append(
                make_invalid_value_error(
                    child(path, "bindTimeoutSeconds"),
                    self.bind_timeout_seconds,
                    "invalid BindTimeoutSeconds, should not be a negative value",
                )
            )
        field_path = child(path, "shape")
        if _STORAGE_CAPACITY_SCORING in gates:
            errors.extend(validate_function_shape(self.shape or (), field_path))
        elif self.shape is not None:
            message = f"unexpected field `shape`, remove it or turn on the feature gate {_STORAGE_CAPACITY_SCORING}"
            # upstream's points have no JSON names
            points = [{"Utilization": point.utilization, "Score": point.score} for point in self.shape]
            errors.append(make_invalid_value_error(field_path, points, message))
        return errors


@dataclass(slots=True)
class _StateData:
    """The plugin's state of one cycle.

    Attributes:
        claims: the pod's claims.
        is_filtered: whether Filter ran.
        reserved_volumes: the volumes and claims to bind; set by Reserve.
    """

    claims: PodVolumeClaims
    is_filtered: bool = False
    reserved_volumes: PodVolumes | None = None


_SKIP_WITHOUT_CLAIMS: Final = PreFilterResult(skip=True, state=_StateData(PodVolumeClaims()))
"""The result that skips Filter. Its state is not None, which shows Reserve that PreFilter ran."""


class VolumeBinding:
    """Filters by volumes and binds claims. The assume cache contains the volumes of pods that are not bound yet."""

    name: ClassVar[str] = "VolumeBinding"
    cacheable_for_spec_class: ClassVar[bool] = True
    score_depends_on: ClassVar[DependsOn] = DependsOn.NODE
    scores_from_pre_filter: ClassVar[bool] = True
    options: ClassVar[type[VolumeBindingArgs]] = VolumeBindingArgs

    def __init__(self, args: PluginArgs[VolumeBindingArgs]) -> None:
        options = args.options
        self._timeout = float(options.bind_timeout_seconds)
        self._scores_by_utilization = (
            build_broken_linear_function(options.shape)
            if options.shape and _STORAGE_CAPACITY_SCORING in args.gates
            else None
        )
        self._volume_index = VolumeIndex()
        self._assume_cache: AssumeCache = args.shared_state.setdefault(
            f"{self.name} of {args.scheduler_name}", AssumeCache()
        )

    # -- filter

    def pre_filter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Get the pod's claims. Skip pods without claims.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.podHasPVCs;
        pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.GetPodVolumeClaims (1.36).
        """
        if not pod.signature.volume_uses.claims:
            return _SKIP_WITHOUT_CLAIMS
        claims = get_pod_volume_claims(pod, snapshot, self._assume_cache)
        return (
            PreFilterResult(status=claims) if isinstance(claims, Status) else PreFilterResult(state=_StateData(claims))
        )

    def pre_filter_is_cacheable(self, pod: PodInfo) -> bool:
        """Return whether the pod has no claims."""
        return not pod.signature.volume_uses.claims

    def filter(self, pod: PodInfo, nodes: NodeView, state: _StateData | None) -> Sequence[Rejection]:  # noqa: ARG002
        """Reject nodes where a volume is not usable.

        Return an error for every node if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.FindPodVolumes,
        volumeBinder.checkVolumeProvisions; component-helpers/storage/volume/pv_helpers.go, FindMatchingVolume (1.36).
        """
        if state is None:
            return reject_all(len(nodes), _NO_STATE)
        state.is_filtered = True
        pod_volumes = find_pod_volumes(state.claims, nodes, self._volume_index, self._assume_cache)
        rejections = [
            Rejection(pod_volumes.node_conflict, _NODE_CONFLICT),
            Rejection(pod_volumes.bind_conflict, _BIND_CONFLICT),
            Rejection(pod_volumes.not_enough_space, _NOT_ENOUGH_SPACE),
            Rejection(pod_volumes.pv_not_found, _PV_NOT_EXIST),
            *(Rejection(mask, Reason(text, Code.ERROR)) for mask, text in pod_volumes.errors),
        ]
        return tuple(rejection for rejection in rejections if rejection.nodes.any())

    # -- score

    def pre_score(self, pod: PodInfo, nodes: NodeView) -> PreScoreResult:  # noqa: ARG002  the extension point's signature
        """Skip if the gate StorageCapacityScoring is off.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.PreScore (1.36).
        """
        return SKIP_SCORE if self._scores_by_utilization is None else PreScoreResult()

    def pre_score_is_cacheable(self, pod: PodInfo) -> bool:  # noqa: ARG002  the extension point's signature
        """Return True: the result depends only on the gate."""
        return True

    def score(self, pod: PodInfo, nodes: NodeView, state: _StateData | None) -> IntArray:  # noqa: ARG002  the extension point's signature
        """Return the capacity scores. If no claim has delayed binding, or Filter is disabled, all scores are 0.

        Raises:
            LookupError: PreFilter is disabled; scoring fails as upstream.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.Score (1.36).
        """
        if self._scores_by_utilization is None:
            return np.zeros(len(nodes), dtype=np.int64)
        if state is None:
            raise LookupError("not found")
        claims = state.claims.unbound_claims_delay_binding
        if not claims or not state.is_filtered:
            return np.zeros(len(nodes), dtype=np.int64)
        pod_volumes = find_pod_volumes(
            PodVolumeClaims(unbound_claims_delay_binding=claims), nodes, self._volume_index, self._assume_cache
        )
        return compute_capacity_scores(pod_volumes, len(nodes), self._scores_by_utilization)

    def score_cache_key(self, pod: PodInfo) -> Hashable | None:
        """Return one key for all pods without claims: all nodes score 0. Return None for other pods."""
        return None if pod.signature.volume_uses.claims else ()

    # -- bind

    def reserve(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: _StateData | None) -> Status | None:  # noqa: ARG002
        """Assume the pod's volumes on the node. Return an error if PreFilter is disabled, as upstream.

        Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.AssumePodVolumes (1.36).
        """
        if state is None:
            return error_status(_NO_STATE.text)
        row = snapshot.row(node_name)
        if not state.claims.unbound_claims_delay_binding or row is None:
            return None
        node_view = snapshot.view(np.array([row], dtype=np.int64))
        pod_volumes = find_pod_volumes(
            PodVolumeClaims(unbound_claims_delay_binding=state.claims.unbound_claims_delay_binding),
            node_view,
            self._volume_index,
            self._assume_cache,
        )
        reserved_volumes = make_pod_volumes(node_name, pod_volumes)
        message = self._assume_cache.assume(reserved_volumes.volumes, reserved_volumes.claims, snapshot)
        if message is not None:
            return error_status(message)
        state.reserved_volumes = reserved_volumes
        return None

    def unreserve(self, pod: PodInfo, node_name: str, state: _StateData | None) -> None:  # noqa: ARG002  the extension point's signature
        """Restore the volumes and claims that Reserve assumed.

        Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.RevertAssumedPodVolumes (1.36).
        """
        if state is not None and state.reserved_volumes is not None:
            self._assume_cache.restore(state.reserved_volumes.volumes, state.reserved_volumes.claims)
            state.reserved_volumes = None

    def pre_bind_pre_flight(self, pod: PodInfo, node_name: str, state: Any) -> PreBindPreFlightResult | Status:  # noqa: ARG002
        """Skip pods that have no claim with delayed binding.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.PreBindPreFlight
        (1.36).
        """
        if state is None or not state.claims.unbound_claims_delay_binding:
            return PreBindPreFlightResult(allow_parallel=True, skip=True)
        return (
            PreBindPreFlightResult(allow_parallel=True)
            if _is_reserved_on(state, node_name)
            else _make_no_volumes_error(node_name)
        )

    def pre_bind(self, pod: PodInfo, node_name: str, snapshot: Snapshot, state: _StateData | None) -> ApiPlan | Status:
        """Return the API calls that bind the claims, and the condition that all claims are bound.

        Source: pkg/scheduler/framework/plugins/volumebinding/binder.go, volumeBinder.BindPodVolumes (1.36).
        """
        if state is None or not state.claims.unbound_claims_delay_binding:
            return ApiPlan()
        reserved_volumes = state.reserved_volumes
        if reserved_volumes is None or not _is_reserved_on(state, node_name):
            return _make_no_volumes_error(node_name)
        return plan_binding(pod, reserved_volumes, snapshot, self._volume_index, self._timeout)

    # -- events

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may make volumes available.

        Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, VolumeBinding.EventsToRegister
        (1.36).
        """
        add_or_update = ActionType.ADD | ActionType.UPDATE
        return (
            ClusterEventWithHint(
                EventResource.STORAGE_CLASS, add_or_update, _is_schedulable_after_storage_class_change
            ),
            ClusterEventWithHint(
                EventResource.PERSISTENT_VOLUME_CLAIM, add_or_update, _is_schedulable_after_claim_change
            ),
            ClusterEventWithHint(EventResource.PERSISTENT_VOLUME, add_or_update),
            ClusterEventWithHint(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL),
            ClusterEventWithHint(EventResource.CSI_NODE, add_or_update, _is_schedulable_after_csi_node_change),
            ClusterEventWithHint(EventResource.CSI_DRIVER, ActionType.UPDATE, _is_schedulable_after_csi_driver_change),
            ClusterEventWithHint(
                EventResource.CSI_STORAGE_CAPACITY, add_or_update, _is_schedulable_after_storage_capacity_change
            ),
        )


def _is_reserved_on(state_data: _StateData, node_name: str) -> bool:
    return state_data.reserved_volumes is not None and state_data.reserved_volumes.node_name == node_name


def _make_no_volumes_error(node_name: str) -> Status:
    return error_status(f'no pod volume found for node "{node_name}"')


def _is_schedulable_after_storage_class_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001  a hint's signature
    old_class: StorageClass | None = event.old
    new_class: StorageClass = event.new
    return QueueingHint.queue_if(old_class is None or old_class.allowed_topologies != new_class.allowed_topologies)


def _is_schedulable_after_claim_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    claim: PersistentVolumeClaim = event.new
    return QueueingHint.queue_if(uses_claim(pod.pod, pod.signature.volume_uses.claims, claim))


def _is_schedulable_after_csi_node_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    old_csi_node: CSINode | None = event.old
    new_csi_node: CSINode = event.new
    return QueueingHint.queue_if(old_csi_node is None or have_migrated_plugins_changed(old_csi_node, new_csi_node))


def _is_schedulable_after_csi_driver_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Queue *pod* if the driver of one of its inline volumes stops tracking storage capacity."""
    old_driver: CSIDriver = event.old
    new_driver: CSIDriver = event.new
    has_inline_volume = any(
        volume.csi is not None and volume.csi.driver == new_driver.metadata.name for volume in pod.spec.volumes
    )
    return QueueingHint.queue_if(
        has_inline_volume and bool(old_driver.spec.storage_capacity) and not new_driver.spec.storage_capacity
    )


def _is_schedulable_after_storage_capacity_change(pod: PodInfo, event: ClusterEvent) -> QueueingHint:  # noqa: ARG001
    old_capacity: CSIStorageCapacity | None = event.old
    new_capacity: CSIStorageCapacity = event.new
    if old_capacity is None:
        return QueueingHint.QUEUE
    old_limit, new_limit = get_volume_size_limit(old_capacity), get_volume_size_limit(new_capacity)
    return QueueingHint.queue_if(new_limit is not None and (old_limit is None or new_limit > old_limit))
