"""Files that are taken over while the process runs: certificates, and the configuration.

They are looked at by what they hold, not by time or name, since Kubernetes changes a mounted ConfigMap or Secret by
turning a symbolic link. What cannot be used changes nothing: the old stays in force, and it is told once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from extender.config.faults import ConfigError
from extender.observe.reloads import ReloadMetrics
from extender.web.certificates import CertificateError, ServingCertificate
from extender.wiring import Scheduling, from_file

log = logging.getLogger("extender.process")

LOOK: Final = 10.0
"""Seconds between looks at a file."""


class ReloadError(Exception):
    """What a file holds now cannot be taken over; one line."""


class RetryError(ReloadError):
    """The same, but later it may be."""


Refresh = Callable[[], Awaitable[bool]]
"""Takes over what is new, and says whether there was anything.

Raises `CertificateError` or `ReloadError` as long as that cannot be used.
"""


async def keep_fresh(what: str, refresh: Refresh, metrics: ReloadMetrics | None = None) -> None:
    """Call *refresh* every now and then, until cancelled, and tell what comes of it in the log and to *metrics*.

    Args:
        what: is kept fresh.
        refresh: takes over what is new.
        metrics: hear of it.
    """
    last = ""
    if metrics is not None:
        metrics.watched(what)
    while True:
        await asyncio.sleep(LOOK)
        wrong, renewed = "", False
        try:
            renewed = await refresh()
        except (CertificateError, ReloadError) as fault:
            wrong = str(fault)
        except Exception as fault:
            wrong = repr(fault)
            if wrong != last:
                log.exception("The %s broke as it was read again", what)
        if wrong and wrong != last:
            log.warning("The %s cannot be taken over, the old one stays in force", what, extra={"err": wrong})
        elif not wrong and (renewed or last):
            log.info("The %s was read again", what)
        if metrics is not None and (wrong != last or renewed):
            metrics.reloaded(what, well=not wrong)
        last = wrong


def renewing(certificate: ServingCertificate) -> Refresh:
    """Takes over a rotated certificate, and rotated authorities; see `keep_fresh`."""

    async def refresh() -> bool:
        return certificate.refresh()

    return refresh


@dataclass(slots=True)
class ConfigurationFile:
    """The file of the configuration in force.

    Attributes:
        file: where it is.
        scheduling: what is in force.
        install: puts another in force, as a whole, or raises `ReloadError` and changes nothing.
    """

    file: Path
    scheduling: Scheduling
    install: Callable[[Scheduling], Awaitable[None]]
    _seen: bytes | None = field(init=False, default=None)
    _wrong: ReloadError | None = field(init=False, default=None)

    async def refresh(self) -> bool:
        """Put in force what the file holds now; whether that decides otherwise than before.

        Raises:
            ReloadError: it cannot be used; what was in force still is.
        """
        try:
            data = self.file.read_bytes()
        except OSError as fault:
            raise ReloadError(f"open {self.file}: {(fault.strerror or str(fault)).lower()}") from fault
        if data == self._seen:
            if self._wrong is not None:
                raise self._wrong
            return False
        try:
            renewed = await self._take(data)
        except RetryError:
            raise
        except ReloadError as wrong:
            self._seen, self._wrong = data, wrong
            raise
        self._seen, self._wrong = data, None
        return renewed

    async def _take(self, data: bytes) -> bool:
        now = self.scheduling
        try:  # in a thread, since others are to be answered meanwhile
            made = await asyncio.to_thread(from_file, data, str(self.file), now.gates, now.registry.shared)
        except ConfigError as wrong:
            raise ReloadError("; ".join(map(str, wrong.faults))) from wrong
        if made.defaulted() == now.defaulted():
            return False
        await self.install(made)
        self.scheduling = made
        for note in made.notes:
            log.warning("%s", note)
        return True
