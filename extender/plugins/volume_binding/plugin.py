"""VolumeBinding: a pod goes only where its volumes can be used, found or made; its claims are bound before it is.

**Refuses** for good. As a whole: a pod whose claim is missing, lost, being deleted, made for another pod, or not bound
though its class does not wait for pods. A node, for every one of these that holds: a bound volume cannot be used there
(`node(s) didn't match PersistentVolume's node affinity`); for a claim that waits for its pod there is no volume, and
none can be made (`node(s) didn't find available persistent volumes to bind`); the storage left is too little to make
one (`node(s) did not have enough free storage`); the volume of a bound claim does not exist. Claims choose in the order
of their size, each takes the smallest volume of its class that will do; for the rest a volume is made if the class has
a provisioner and allows the topology of the node. Storage left is looked at if the driver tracks it. Not asked for pods
without claims.

**Scores** nothing, unless the gate StorageCapacityScoring is on: then how full volumes that are matched would be, or
else the pools that volumes are made from, put through `shape`; the mean over the storage classes.

**Binds.** A node that is chosen has the volumes promised to the pod, so that no other pod gets them. Before the pod is
bound, that is written to the API server, and all claims must be bound within `bindTimeoutSeconds`.

**Undone by** a storage class, a claim of the pod, a volume, storage capacity that was added or grew, a node added or
with other labels, a node that migrates drivers, a driver that no longer tracks storage.

**Options** `bindTimeoutSeconds`: 600. `shape`: points of `utilization`, 0 to 100, and `score`, 0 to 10, only with the
gate StorageCapacityScoring; 10 for empty and 0 for full storage if there is none.

Source: B091 to B101, G042.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child
from extender.config.strict import Int64
from extender.config.validate import invalid
from extender.framework.changes import Registration
from extender.framework.function_shape import UtilizationShapePoint, drawn, shape_faults
from extender.framework.points import SKIP_SCORE, Plan, PreFiltered, PreFlight, PreScored
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, Status, error
from extender.plugins.volume_binding.binding import Reservation, plan, reservation
from extender.plugins.volume_binding.claims import claims_in_order
from extender.plugins.volume_binding.events import EVENTS
from extender.plugins.volume_binding.scoring import capacity_scores
from extender.volumes.assumptions import Assumptions
from extender.volumes.finding import PodClaims, find
from extender.volumes.stock import Stock

_GATE: Final = "StorageCapacityScoring"
_ELSEWHERE: Final = Reason("node(s) didn't match PersistentVolume's node affinity", Code.UNRESOLVABLE)
_UNBINDABLE: Final = Reason("node(s) didn't find available persistent volumes to bind", Code.UNRESOLVABLE)
_TOO_LITTLE: Final = Reason("node(s) did not have enough free storage", Code.UNRESOLVABLE)
_UNPREPARED: Final = Reason("not found", Code.ERROR)
_VANISHED: Final = Reason(
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", Code.UNRESOLVABLE
)


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel"):
    """Options of VolumeBinding.

    Attributes:
        bind_timeout_seconds: how long the binding of claims may take.
        shape: the points of the function from utilization to score; None while the gate is off.
    """

    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """*raw* with the usual shape if there is none and the gate is on. Source: G042."""
        body = dict(raw)
        if body.get("bindTimeoutSeconds") is None:
            body.pop("bindTimeoutSeconds", None)
        if not body.get("shape") and _GATE in gates:
            body["shape"] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
        return body

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:
        """A negative timeout, a wrong shape, a shape without its gate. Source: G042."""
        found: list[Fault] = []
        if self.bind_timeout_seconds < 0:
            found.append(
                invalid(
                    child(path, "bindTimeoutSeconds"),
                    self.bind_timeout_seconds,
                    "invalid BindTimeoutSeconds, should not be a negative value",
                )
            )
        where = child(path, "shape")
        if _GATE in gates:
            found.extend(shape_faults(self.shape or (), where))
        elif self.shape is not None:
            detail = f"unexpected field `shape`, remove it or turn on the feature gate {_GATE}"
            found.append(invalid(where, msgspec.to_builtins(self.shape), detail))
        return found


@dataclass(slots=True)
class _Notes:
    """What is known of a pod in one cycle; `reserved` is set once it has a node and claims to bind."""

    claims: PodClaims
    reserved: Reservation | None = None


_CLAIMS_NOTHING: Final = PreFiltered(skip=True, notes=_Notes(PodClaims()))
"""The pod was looked at, which `reserve` must know."""


class VolumeBinding:
    """The plugin; see the module. Keeps what it promised to pods that are not bound yet."""

    name: ClassVar[str] = "VolumeBinding"
    kept_for_kin: ClassVar[bool] = True
    options: ClassVar[type[VolumeBindingArgs]] = VolumeBindingArgs

    def __init__(self, setup: Setup[VolumeBindingArgs]) -> None:
        options = setup.options
        self._timeout = float(options.bind_timeout_seconds)
        self._curve = drawn(options.shape) if options.shape and _GATE in setup.gates else None
        self._stock = Stock()
        self._promised: Assumptions = setup.shared.setdefault(f"{self.name} of {setup.profile}", Assumptions())

    # -- filter

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Source: B091, B092."""
        if not pod.shape.volumes.claims:
            return _CLAIMS_NOTHING
        claims = claims_in_order(pod, cluster, self._promised)
        return PreFiltered(status=claims) if isinstance(claims, Status) else PreFiltered(notes=_Notes(claims))

    def pre_filter_kept(self, pod: PodQuery) -> bool:
        """For pods without claims."""
        return not pod.shape.volumes.claims

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """As upstream, an error on every node if `pre_filter` is switched off. Source: B093 to B096."""
        known: _Notes | None = notes
        if known is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        found = find(known.claims, nodes, self._stock, self._promised)
        groups = [
            Rejection(found.elsewhere, _ELSEWHERE),
            Rejection(found.unbindable, _UNBINDABLE),
            Rejection(found.too_little, _TOO_LITTLE),
            Rejection(found.vanished, _VANISHED),
            *(Rejection(mask, Reason(text, Code.ERROR)) for mask, text in found.faults),
        ]
        return tuple(group for group in groups if group.nodes.any())

    # -- score

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Source: B100."""
        if self._curve is None:
            return SKIP_SCORE
        if not pod.shape.volumes.claims:
            return PreScored()
        claims = claims_in_order(pod, nodes.snapshot, self._promised)
        return PreScored(status=claims) if isinstance(claims, Status) else PreScored(notes=claims)

    def pre_score_kept(self, pod: PodQuery) -> bool:
        """For pods without claims, and where nothing is scored."""
        return self._curve is None or not pod.shape.volumes.claims

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """Source: B100."""
        claims: PodClaims | None = notes
        if self._curve is None or claims is None or not claims.delayed:
            return np.zeros(len(nodes), dtype=np.int64)
        found = find(PodClaims(delayed=claims.delayed), nodes, self._stock, self._promised)
        return capacity_scores(found, len(nodes), self._curve)

    # -- bind

    def reserve(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Status | None:  # noqa: ARG002
        """As upstream, an error for every pod if `pre_filter` is switched off. Source: B097."""
        known: _Notes | None = notes
        if known is None:
            return error(_UNPREPARED.text)
        row = cluster.row(node)
        if not known.claims.delayed or row is None:
            return None
        view = cluster.view(np.array([row], dtype=np.int64))
        found = find(PodClaims(delayed=known.claims.delayed), view, self._stock, self._promised)
        reserved = reservation(node, found)
        fault = self._promised.make(reserved.volumes, reserved.claims, cluster)
        if fault is not None:
            return error(fault)
        known.reserved = reserved
        return None

    def unreserve(self, pod: PodQuery, node: str, notes: Any) -> None:  # noqa: ARG002  the point's signature
        """Source: B097."""
        known: _Notes | None = notes
        if known is not None and known.reserved is not None:
            self._promised.take_back(known.reserved.volumes, known.reserved.claims)
            known.reserved = None

    def pre_bind_pre_flight(self, pod: PodQuery, node: str, notes: Any) -> PreFlight | Status:  # noqa: ARG002
        """Source: B098."""
        known: _Notes | None = notes
        if known is None or not known.claims.delayed:
            return PreFlight(parallel=True, skip=True)
        return PreFlight(parallel=True) if _is_for(known, node) else _unknown(node)

    def pre_bind(self, pod: PodQuery, node: str, cluster: Snapshot, notes: Any) -> Plan | Status:  # noqa: ARG002
        """Source: B099."""
        known: _Notes | None = notes
        if known is None or not known.claims.delayed:
            return Plan()
        reserved = known.reserved
        if reserved is None or not _is_for(known, node):
            return _unknown(node)
        return plan(pod, reserved, self._stock, self._timeout)

    # -- events

    def events(self) -> Sequence[Registration]:
        """Source: B101."""
        return EVENTS


def _is_for(known: _Notes, node: str) -> bool:
    return known.reserved is not None and known.reserved.node == node


def _unknown(node: str) -> Status:
    return error(f'no pod volume found for node "{node}"')
