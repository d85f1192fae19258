"""Who leads: client-go's leader election as a machine. Times go in, what to send comes out; it sends nothing itself.

    waiting ── the lease is free, ours, or unchanged for its duration ──> write it ── accepted ──> leading
       ^                                                                                            |
       └───────────── another holds it, or no write was accepted by the renew deadline ─────────────┘

Only our own monotonic clock decides: a lease has run out when we have seen no change in it for its duration, whatever
times it bears; so clocks that differ or jump do no harm. The wall clock only labels. Between the last renewal that was
accepted, counted from when it was sent, and the renew deadline we may act; others may take over only after the longer
lease duration, counted from later. Source: client-go's leaderelection, I001, G003 to G005.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from extender.config.model import LeaderElection
from extender.objects.meta import ObjectReference
from extender.objects.record import Int32, Record
from extender.objects.times import micro_stamp

SHORTEST: Final = 0.5
"""The part of the retry period that is waited at least; the rest is by chance."""


class LeaseSpec(Record, frozen=True, kw_only=True):
    """Who holds a lease, and since when; times are those of the holder's clock."""

    holder_identity: str = ""
    lease_duration_seconds: Int32 = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: Int32 = 0


class Lease(Record, frozen=True, kw_only=True):
    """A lease as it is read; `metadata` goes back as it came."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    spec: LeaseSpec = LeaseSpec()


def read(data: bytes) -> Lease:
    """A lease of its JSON; absent and null fields are empty.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    raw = msgspec.json.decode(data, type=dict[str, Any])
    spec = {key: value for key, value in (raw.get("spec") or {}).items() if value is not None}
    return msgspec.convert({"metadata": raw.get("metadata") or {}, "spec": spec}, Lease)


@dataclass(frozen=True, slots=True)
class Write:
    """A lease to send: to be created, or to replace the one with its `metadata.resourceVersion`."""

    body: Mapping[str, Any]
    create: bool


@dataclass(slots=True)
class Election:
    """One candidate.

    Attributes:
        settings: names and durations.
        identity: who we are; differs from all other candidates.
        leading: the lease was ours when we last knew.
        holder: who held it when we last looked; empty: nobody, or unknown.
    """

    settings: LeaderElection
    identity: str
    leading: bool = False
    _seen: LeaseSpec = field(default_factory=LeaseSpec)
    _seen_at: float = float("-inf")
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _renewed_at: float = float("-inf")

    @property
    def holder(self) -> str:
        """Who held the lease when we last looked; empty: nobody, or unknown."""
        return self._seen.holder_identity

    @property
    def lease(self) -> ObjectReference:
        """A reference to the lease, as it was when we last knew."""
        return ObjectReference(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            namespace=self.settings.resource_namespace,
            name=self.settings.resource_name,
            uid=self._metadata.get("uid", ""),
            resource_version=self._metadata.get("resourceVersion", ""),
        )

    def may_act(self, now: float) -> bool:
        """Whether we lead for certain at *now*: to be asked immediately before each binding."""
        return self.leading and now - self._renewed_at < self.settings.renew_deadline

    def healthy(self, now: float, tolerance: float = 20.0) -> bool:
        """False if we believe to lead although the lease ran out *tolerance* seconds ago: something hangs.

        Source: client-go's HealthzAdaptor, with kube-scheduler's 20 seconds.
        """
        return not self.leading or now - self._seen_at <= self.settings.lease_duration + tolerance

    def optimistic(self, now: float, wall: float) -> Write | None:
        """The renewal to send without looking first; None: look first."""
        if not (self._is_ours() and self._is_valid(now)):
            return None
        return self._write(wall, acquired=self._seen.acquire_time, transitions=self._seen.lease_transitions)

    def looked(self, lease: Lease | None, now: float, wall: float) -> Write | None:
        """The write to send after looking; None: another holds the lease, or did when it was deleted.

        Args:
            lease: what was found; None: there is none.
            now: monotonic seconds.
            wall: seconds since 1970.
        """
        if lease is None:
            self._metadata = {}
            if self.holder and not self._is_ours() and self._is_valid(now):
                return None  # somebody deleted it; its holder may act on it until it would have run out
            return Write(self._body(wall, micro_stamp(wall), 0), create=True)
        self._metadata = lease.metadata
        if lease.spec != self._seen:
            self._seen, self._seen_at = lease.spec, now
        if self._is_ours():
            return self._write(wall, acquired=lease.spec.acquire_time, transitions=lease.spec.lease_transitions)
        self.leading = False
        if self.holder and self._is_valid(now):
            return None
        return self._write(wall, acquired=micro_stamp(wall), transitions=lease.spec.lease_transitions + 1)

    def accepted(self, answer: Lease, sent_at: float, now: float) -> None:
        """Our write was accepted.

        Args:
            answer: the lease as the server has it now.
            sent_at: monotonic seconds when it was sent.
            now: monotonic seconds.
        """
        self._metadata, self._seen, self._seen_at = answer.metadata, answer.spec, now
        self.leading, self._renewed_at = True, sent_at

    def lost(self) -> None:
        """No renewal was accepted in time."""
        self.leading = False

    def release(self, lease: Lease, wall: float) -> Write | None:
        """What gives the lease up; None if it is not ours (any more)."""
        self.leading = False
        if lease.spec.holder_identity != self.identity:
            return None
        self._metadata = lease.metadata
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": lease.spec.lease_transitions}
        times = {"acquireTime": micro_stamp(wall), "renewTime": micro_stamp(wall)}
        return Write(self._object(spec | times), create=False)

    def retry_wait(self, now: float, chance: float) -> float:
        """Seconds until a lease that others hold is looked at again.

        Never more than the retry period, and no longer than until the lease runs out, so that whoever waits takes over
        within lease duration and retry period of the last renewal. Client-go waits up to 2.2 periods.

        Args:
            now: monotonic seconds.
            chance: from 0 up to 1.
        """
        wait = self.settings.retry_period * (SHORTEST + (1.0 - SHORTEST) * chance)
        left = self._seen_at + self._seen.lease_duration_seconds - now
        return min(wait, left) if self.holder and left > 0 else wait

    def _is_ours(self) -> bool:
        return self.holder == self.identity

    def _is_valid(self, now: float) -> bool:
        return self._seen_at + self._seen.lease_duration_seconds > now

    def _write(self, wall: float, *, acquired: str, transitions: int) -> Write:
        return Write(self._body(wall, acquired, transitions), create=False)

    def _body(self, wall: float, acquired: str, transitions: int) -> dict[str, Any]:
        return self._object(
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(self.settings.lease_duration),
                "acquireTime": acquired or micro_stamp(wall),
                "renewTime": micro_stamp(wall),
                "leaseTransitions": transitions,
            }
        )

    def _object(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        named = {"name": self.settings.resource_name, "namespace": self.settings.resource_namespace}
        metadata = {**self._metadata, **named}
        metadata.pop("managedFields", None)
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": dict(spec)}
