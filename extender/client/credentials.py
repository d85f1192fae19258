"""Who we are to the API server: one identity for all requests, read again when it ages or is refused."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.basics.clock import Clock
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import Identity, Place, read

_LOG: Final = logging.getLogger(__name__)

LEEWAY: Final = 10.0
"""Seconds before its end at which an identity that ends is read again."""

_RETRY: Final = 10.0
"""Seconds until a failed reading is tried again, while the old identity still serves."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request needs.

    Attributes:
        identity: who and where.
        tls: None for plain HTTP. The same object as long as nothing changed, so that connections are used again.
        number: counts readings; tells whether another request has already had a refused identity replaced.
    """

    identity: Identity
    tls: ssl.SSLContext | None
    number: int


class Credentials:
    """The identity in force. Safe to ask from many tasks of one event loop: only one reads, the others wait for it."""

    def __init__(self, place: Place, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._access: Access | None = None
        self._due = 0.0
        self._tls: tuple[object, ssl.SSLContext | None] = (None, None)
        self._reading = asyncio.Lock()

    async def current(self) -> Access:
        """The identity to use now.

        Raises:
            CredentialsError: there is none, or the old one has ended and there is no new one.
        """
        if self._access is None or self._clock.monotonic() >= self._due:
            number = self._access.number if self._access else 0
            async with self._reading:
                if self._access is None or self._access.number == number:
                    await self._read(forced=False)
        assert self._access is not None  # noqa: S101  _read sets it or raises
        return self._access

    async def refused(self, access: Access) -> Access:
        """The identity to use instead of *access*, which the server refused; reads it again unless that has been done.

        Raises:
            CredentialsError: it cannot be read.
        """
        async with self._reading:
            if self._access is None or self._access.number == access.number:
                await self._read(forced=True)
        assert self._access is not None  # noqa: S101
        return self._access

    async def _read(self, *, forced: bool) -> None:
        # Running a plugin or asking a token endpoint takes long; files do not, but they are read in one go with those.
        now = self._clock.monotonic()
        try:
            identity = await asyncio.to_thread(read, self._place)
            tls = self._context(identity)
        except CredentialsError as fault:
            if self._access is None or forced or self._ended(self._access.identity):
                raise
            _LOG.warning("Credentials could not be read again, the old ones serve on", extra={"err": str(fault)})
            self._due = now + _RETRY
            return
        lasts = [identity.good_for] if identity.good_for is not None else []
        if identity.good_until is not None:
            lasts.append(max(identity.good_until - self._clock.now() - LEEWAY, _RETRY))
        self._due = now + min(lasts, default=float("inf"))
        self._access = Access(identity, tls, self._access.number + 1 if self._access else 1)

    def _ended(self, identity: Identity) -> bool:
        return identity.good_until is not None and self._clock.now() >= identity.good_until

    def _context(self, identity: Identity) -> ssl.SSLContext | None:
        """TLS settings; new ones only if a file's content changed, as every new one means new connections."""
        if not identity.server.startswith("https"):
            return None
        files = (identity.ca, identity.certificate, identity.key)
        try:
            print_of = (files, identity.insecure, *(Path(file).read_bytes() if file else b"" for file in files))
            if self._tls[0] != print_of:
                self._tls = (print_of, _make(identity))
        except (OSError, ssl.SSLError) as fault:
            raise CredentialsError(f"certificates for {identity.server}: {fault}") from fault
        return self._tls[1]


def _make(identity: Identity) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=identity.ca or None)
    # Clusters' own authorities often lack extensions that Python 3.13 began to insist on; Go does not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    if identity.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.certificate:
        context.load_cert_chain(identity.certificate, identity.key or None)
    return context
