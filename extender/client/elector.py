"""Leader election carried out: the machine of `lease` and the API server, with waits in between."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.basics.clock import Clock
from extender.client.errors import AnswerError, ApiError, NotFoundError
from extender.client.lease import Election, Lease, Write, read
from extender.client.pacing import Chance
from extender.client.writes import Writer

_LOG: Final = logging.getLogger(__name__)


def _nobody(holder: str) -> None:
    """Reports to nobody."""


@dataclass(slots=True)
class Elector:
    """One candidate at work: `acquire`, then `hold`, then `release`; each once.

    Attributes:
        election: the machine; ask it `may_act` before each binding.
        writer: over a session of its own, so that a crowded one cannot delay a renewal.
        clock: decides by its monotonic seconds, labels by the others.
        chance: numbers from 0 up to 1.
        on_holder: told of each new holder.
    """

    election: Election
    writer: Writer
    clock: Clock
    chance: Chance
    on_holder: Callable[[str], None] = _nobody
    _reported: str = ""

    def may_act(self) -> bool:
        """Whether we lead for certain, at this very moment."""
        return self.election.may_act(self.clock.monotonic())

    async def acquire(self) -> None:
        """Try until we lead; may take for ever."""
        _LOG.info("Attempting to acquire leader lease...", extra={"lock": self._lock})
        while not await self._try():
            await asyncio.sleep(self.election.retry_wait(self.clock.monotonic(), self.chance()))
        _LOG.info("Successfully acquired lease", extra={"lock": self._lock})

    async def hold(self) -> str:
        """Renew as long as it can be done; returns when we no longer lead, and says why."""
        settings = self.election.settings
        while True:
            await asyncio.sleep(settings.retry_period)
            deadline = self.clock.monotonic() + settings.renew_deadline
            while not await self._try(deadline):
                if not self.election.leading:
                    return f"the lease is held by {self.election.holder or 'nobody'}"
                left = deadline - self.clock.monotonic()
                await asyncio.sleep(max(0.0, min(settings.retry_period, left)))
                if left <= settings.retry_period:
                    self.election.lost()
                    return f"the lease could not be renewed within {settings.renew_deadline:g} s"

    async def release(self) -> bool:
        """Give the lease up if it is ours, so that others need not wait for it to run out; False if that failed.

        Call it when everything done under the lease has ended: from then on another may lead.
        """
        settings = self.election.settings
        try:
            async with asyncio.timeout(settings.renew_deadline):
                lease = await self._look()
                write = self.election.release(lease, self.clock.now()) if lease is not None else None
                if write is not None:
                    await self._send(write)
        except (ApiError, TimeoutError) as fault:
            _LOG.warning("Failed to release the lease", extra={"lock": self._lock, "err": str(fault)})
            return False
        finally:
            self.election.lost()
        return True

    @property
    def _lock(self) -> str:
        settings = self.election.settings
        return f"{settings.resource_namespace}/{settings.resource_name}"

    async def _try(self, deadline: float = float("inf")) -> bool:
        """Acquire or renew, once."""
        now = self.clock.monotonic()
        try:
            async with asyncio.timeout(deadline - now if deadline < float("inf") else None):
                done = await self._attempt()
        except (ApiError, TimeoutError) as fault:
            _LOG.warning("Failed to update the lease", extra={"lock": self._lock, "err": str(fault)})
            done = False
        if self.election.holder != self._reported:
            self._reported = self.election.holder
            self.on_holder(self._reported)
        return done

    async def _attempt(self) -> bool:
        # The renewal that needs no look first saves the server a request each time; if it fails, we look.
        write = self.election.optimistic(self.clock.monotonic(), self.clock.now())
        if write is not None:
            try:
                await self._carry_out(write)
            except ApiError as fault:
                _LOG.info("Failed to renew the lease without looking", extra={"lock": self._lock, "err": str(fault)})
            else:
                return True
        lease = await self._look()
        write = self.election.looked(lease, self.clock.monotonic(), self.clock.now())
        if write is None:
            return False
        await self._carry_out(write)
        return True

    async def _carry_out(self, write: Write) -> None:
        sent_at = self.clock.monotonic()
        answer = await self._send(write)
        self.election.accepted(answer, sent_at, self.clock.monotonic())

    async def _look(self) -> Lease | None:
        settings = self.election.settings
        try:
            found = await self.writer.get(
                "Lease", settings.resource_namespace, settings.resource_name, seconds=self._seconds
            )
        except NotFoundError:
            return None
        return _read(found)

    async def _send(self, write: Write) -> Lease:
        settings = self.election.settings
        if write.create:
            answer = await self.writer.create("Lease", settings.resource_namespace, write.body, seconds=self._seconds)
        else:
            answer = await self.writer.update(
                "Lease", settings.resource_namespace, settings.resource_name, write.body, seconds=self._seconds
            )
        return _read(answer)

    @property
    def _seconds(self) -> float:
        """One request may take so long. Source: resourcelock.NewFromKubeconfig."""
        return max(self.election.settings.renew_deadline / 2, 1.0)


def _read(data: bytes) -> Lease:
    try:
        return read(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise AnswerError(f"the lease cannot be read: {fault}") from fault
