"""The state machine of client-go's leader election. It takes times and leases, and returns writes; it sends no request.

    waiting ── the lease is free, ours, or unchanged for its duration ──> write it ── accepted ──> leading
       ^                                                                                            |
       └─── another candidate holds it, or no write was accepted by the renew deadline ─────────────┘

A lease has expired when it has not changed for its duration, measured with our own monotonic clock. The times in the
lease are ignored, so clocks that differ or jump are harmless. The wall clock is only for timestamps.

After an accepted renewal we may act until the renew deadline, counted from the time when the renewal was sent. Other
candidates may take over only after the lease duration, which is longer and is counted from a later time.

Source: client-go/tools/leaderelection/leaderelection.go, LeaderElector.tryAcquireOrRenew;
cmd/kube-scheduler/app/options/options.go, makeLeaderElectionConfig;
component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.api.kinds.meta import Int32, KubernetesStruct, ObjectReference
from extender.api.timestamps import format_micro_time
from extender.config.model import LeaderElection

MIN_RETRY_FRACTION: Final = 0.5
"""The minimum retry delay as a fraction of the retry period; the rest is random."""


class LeaseSpec(KubernetesStruct, frozen=True, kw_only=True):
    """The spec of a lease. Its times come from the holder's clock."""

    holder_identity: str = ""
    lease_duration_seconds: Int32 = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: Int32 = 0


class Lease(KubernetesStruct, frozen=True, kw_only=True):
    """A lease; `metadata` is written back unchanged."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    spec: LeaseSpec = LeaseSpec()


class _RawLease(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


def decode_lease(data: bytes) -> Lease:
    """Decode a lease; absent and null fields are empty.

    Raises:
        msgspec.MsgspecError: *data* is not a lease.
    """
    raw = msgspec.json.decode(data, type=_RawLease)
    spec = {key: value for key, value in (raw.spec or {}).items() if value is not None}
    return msgspec.convert({"metadata": raw.metadata or {}, "spec": spec}, Lease)


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """A lease to create, or to update at its `metadata.resourceVersion`."""

    body: Mapping[str, Any]
    create: bool


@dataclass(slots=True)
class Election:
    """The state of the election from the view of one candidate.

    Attributes:
        settings: the names and durations of the election.
        identity: our holder identity, unique among the candidates.
        leading: whether we held the lease when it was last observed.
    """

    settings: LeaderElection
    identity: str
    leading: bool = False
    _observed_spec: LeaseSpec = field(default_factory=LeaseSpec)
    _observed_at: float = float("-inf")
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _renewed_at: float = float("-inf")

    @property
    def holder(self) -> str:
        """Holder of the lease when it was last observed; empty: none, or unknown."""
        return self._observed_spec.holder_identity

    @property
    def lease_reference(self) -> ObjectReference:
        """A reference to the lease as last observed."""
        return ObjectReference(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            namespace=self.settings.resource_namespace,
            name=self.settings.resource_name,
            uid=self._metadata.get("uid", ""),
            resource_version=self._metadata.get("resourceVersion", ""),
        )

    def may_act(self, now: float) -> bool:
        """Return whether we certainly lead at *now* (monotonic seconds); check it immediately before each binding."""
        return self.leading and now - self._renewed_at < self.settings.renew_deadline

    def is_healthy(self, now: float) -> bool:
        """Return False if the process hangs: it leads, but the lease expired more than 20 seconds ago.

        Source: client-go/tools/leaderelection/healthzadaptor.go, HealthzAdaptor.Check;
        cmd/kube-scheduler/app/server.go, Run (1.36).
        """
        return not self.leading or now - self._observed_at <= self.settings.lease_duration + 20.0

    def make_renewal_without_get(self, now: float, wall_time: float) -> LeaseWrite | None:
        """Return a renewal to send without reading the lease first; None: read it first."""
        return self._make_renewal(wall_time) if self._holds_lease() and self._is_lease_valid(now) else None

    def observe_lease(self, lease: Lease | None, now: float, wall_time: float) -> LeaseWrite | None:
        """Observe the lease, and return the write to send; None: another holder's lease is still valid.

        *lease* is None if it does not exist. *now* is in monotonic seconds, *wall_time* in seconds since 1970.
        """
        if lease is None:
            self._metadata = {}
            if self.holder and not self._holds_lease() and self._is_lease_valid(now):
                return None  # the lease was deleted, but its holder may act until the lease would have expired
            return LeaseWrite(self._make_body(wall_time, format_micro_time(wall_time), 0), create=True)
        self._metadata = lease.metadata
        if lease.spec != self._observed_spec:
            self._observed_spec, self._observed_at = lease.spec, now
        if self._holds_lease():
            return self._make_renewal(wall_time)
        self.leading = False
        if self.holder and self._is_lease_valid(now):
            return None
        transitions = lease.spec.lease_transitions + 1
        return LeaseWrite(self._make_body(wall_time, format_micro_time(wall_time), transitions), create=False)

    def confirm_write(self, response: Lease, sent_at: float, now: float) -> None:
        """Record that the server accepted our write.

        *response* has the lease. *sent_at* and *now* are in monotonic seconds.
        """
        self._metadata, self._observed_spec, self._observed_at = response.metadata, response.spec, now
        self.leading, self._renewed_at = True, sent_at

    def stop_leading(self) -> None:
        """Stop leading, since no renewal was accepted in time."""
        self.leading = False

    def make_release_write(self, lease: Lease, wall_time: float) -> LeaseWrite | None:
        """Return the write that releases the lease; None if we do not hold it."""
        self.leading = False
        if lease.spec.holder_identity != self.identity:
            return None
        self._metadata = lease.metadata
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": lease.spec.lease_transitions}
        times = {"acquireTime": format_micro_time(wall_time), "renewTime": format_micro_time(wall_time)}
        return LeaseWrite(self._make_object(spec | times), create=False)

    def compute_retry_delay(self, now: float, jitter: float) -> float:
        """Return the seconds until a lease of another holder is read again.

        The delay is at most the retry period, and it ends when the lease expires. So a candidate takes over at most the
        lease duration plus the retry period after the last renewal. Client-go waits up to 2.2 periods.

        *now* is in monotonic seconds, *jitter* a random number from 0 up to 1.
        """
        wait = self.settings.retry_period * (MIN_RETRY_FRACTION + (1.0 - MIN_RETRY_FRACTION) * jitter)
        remaining = self._observed_at + self._observed_spec.lease_duration_seconds - now
        return min(wait, remaining) if self.holder and remaining > 0 else wait

    def _holds_lease(self) -> bool:
        return self.holder == self.identity

    def _is_lease_valid(self, now: float) -> bool:
        return self._observed_at + self._observed_spec.lease_duration_seconds > now

    def _make_renewal(self, wall_time: float) -> LeaseWrite:
        spec = self._observed_spec
        return LeaseWrite(self._make_body(wall_time, spec.acquire_time, spec.lease_transitions), create=False)

    def _make_body(self, wall_time: float, acquire_time: str, transitions: int) -> dict[str, Any]:
        return self._make_object(
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(self.settings.lease_duration),
                "acquireTime": acquire_time or format_micro_time(wall_time),
                "renewTime": format_micro_time(wall_time),
                "leaseTransitions": transitions,
            }
        )

    def _make_object(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        name_fields = {"name": self.settings.resource_name, "namespace": self.settings.resource_namespace}
        metadata = {**self._metadata, **name_fields}
        metadata.pop("managedFields", None)
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": dict(spec)}
