"""Run leader election: apply the state machine of `leader_election` to the API server's lease."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.basics.clock import Clock
from extender.client.errors import ApiError, InvalidResponseError, NotFoundError
from extender.client.leader_election import Election, Lease, LeaseWrite, decode_lease
from extender.client.rate_limit import Jitter
from extender.client.writer import WriteOptions, Writer

_LOG: Final = logging.getLogger(__name__)

_TIMEOUT_TEXT: Final = "no response before the renew deadline"
"""The message of a TimeoutError, which has none."""


@dataclass(slots=True)
class LeaderElector:
    """Runs one candidate: call `acquire`, then `renew`, then `release`, each once.

    Attributes:
        election: the state machine; check its `may_act` before each binding.
        writer: the writer; it has its own session, so that other requests cannot delay a renewal.
        clock: the clock; its monotonic time is for decisions, and its wall time is for timestamps.
        jitter: the source of random numbers from 0 up to 1.

    Source: client-go/tools/leaderelection/leaderelection.go, LeaderElector (1.36).
    """

    election: Election
    writer: Writer
    clock: Clock
    jitter: Jitter
    on_new_leader: Callable[[str], None] = lambda _: None
    _reported_leader: str = ""

    def may_act(self) -> bool:
        """Return whether we certainly lead now."""
        return self.election.may_act(self.clock.monotonic())

    async def acquire(self) -> None:
        """Try to acquire the lease until we lead."""
        _LOG.info("Attempting to acquire leader lease...", extra={"lock": self._lock})
        while not await self._try_acquire_or_renew():
            await asyncio.sleep(self.election.compute_retry_delay(self.clock.monotonic(), self.jitter()))
        _LOG.info("Successfully acquired lease", extra={"lock": self._lock})

    async def renew(self) -> str:
        """Renew the lease until we no longer lead; return the reason."""
        settings = self.election.settings
        while True:
            await asyncio.sleep(settings.retry_period)
            deadline = self.clock.monotonic() + settings.renew_deadline
            while not await self._try_acquire_or_renew(deadline):
                if not self.election.leading:
                    return f"the lease is held by {self.election.holder or 'nobody'}"
                remaining = deadline - self.clock.monotonic()
                await asyncio.sleep(max(0.0, min(settings.retry_period, remaining)))
                if remaining <= settings.retry_period:
                    self.election.stop_leading()
                    return f"the lease could not be renewed within {settings.renew_deadline:g} s"

    async def release(self) -> bool:
        """Release the lease if we hold it, so that other candidates do not wait until it expires.

        Call it after all work that needs the lease. Return False if the release failed.
        """
        settings = self.election.settings
        try:
            async with asyncio.timeout(settings.renew_deadline):
                lease = await self._get_lease()
                write = self.election.make_release_write(lease, self.clock.now()) if lease is not None else None
                if write is not None:
                    await self._send(write)
        except (ApiError, TimeoutError) as error:
            _LOG.warning("Failed to release the lease", extra={"lock": self._lock, "err": str(error) or _TIMEOUT_TEXT})
            return False
        finally:
            self.election.stop_leading()
        return True

    @property
    def _lock(self) -> str:
        settings = self.election.settings
        return f"{settings.resource_namespace}/{settings.resource_name}"

    async def _try_acquire_or_renew(self, deadline: float = float("inf")) -> bool:
        """Try once to acquire or renew the lease; return whether we lead."""
        now = self.clock.monotonic()
        try:
            async with asyncio.timeout(deadline - now if deadline < float("inf") else None):
                is_leader = await self._acquire_or_renew()
        except (ApiError, TimeoutError) as error:
            _LOG.warning("Failed to update the lease", extra={"lock": self._lock, "err": str(error) or _TIMEOUT_TEXT})
            is_leader = False
        if self.election.holder != self._reported_leader:
            self._reported_leader = self.election.holder
            self.on_new_leader(self._reported_leader)
        return is_leader

    async def _acquire_or_renew(self) -> bool:
        # Most renewals need no GET first. If such a renewal fails, the lease is read.
        write = self.election.make_renewal_without_get(self.clock.monotonic(), self.clock.now())
        if write is not None:
            try:
                await self._write(write)
            except ApiError as error:
                _LOG.info(
                    "Failed to renew the lease without reading it first", extra={"lock": self._lock, "err": str(error)}
                )
            else:
                return True
        lease = await self._get_lease()
        write = self.election.observe_lease(lease, self.clock.monotonic(), self.clock.now())
        if write is None:
            return False
        await self._write(write)
        return True

    async def _write(self, write: LeaseWrite) -> None:
        sent_at = self.clock.monotonic()
        lease = await self._send(write)
        if lease.spec.holder_identity != self.election.identity:
            raise InvalidResponseError("the response to the write of the lease does not name us as its holder")
        self.election.confirm_write(lease, sent_at, self.clock.monotonic())

    async def _get_lease(self) -> Lease | None:
        settings = self.election.settings
        try:
            body = await self.writer.get(
                "Lease", settings.resource_namespace, settings.resource_name, timeout=self._request_timeout
            )
        except NotFoundError:
            return None
        return _decode(body)

    async def _send(self, write: LeaseWrite) -> Lease:
        settings, options = self.election.settings, WriteOptions(timeout=self._request_timeout)
        if write.create:
            body = await self.writer.create("Lease", settings.resource_namespace, write.body, options)
        else:
            body = await self.writer.update(
                "Lease", settings.resource_namespace, settings.resource_name, write.body, options
            )
        return _decode(body)

    @property
    def _request_timeout(self) -> float:
        """Seconds. Source: client-go/tools/leaderelection/resourcelock/interface.go, NewFromKubeconfig (1.36)."""
        return max(self.election.settings.renew_deadline / 2, 1.0)


def _decode(data: bytes) -> Lease:
    try:
        lease = decode_lease(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidResponseError(f"the lease cannot be read: {error}") from error
    if not lease.metadata.get("resourceVersion"):
        # Without a version, our update would replace the lease of a holder that it did not read.
        raise InvalidResponseError("the lease cannot be read: it has no resourceVersion")
    return lease
