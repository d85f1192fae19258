"""The credentials for the API server, loaded again when they expire or are rejected."""

import asyncio
import logging
import ssl
from dataclasses import dataclass, replace
from typing import Final

from extender.basics.clock import Clock
from extender.basics.input_limits import MAX_CERTIFICATE_BYTES, InputLimitError, read_limited_file
from extender.basics.private_keys import refuse_passphrase
from extender.client.auth.exec_plugin import kill_running_plugins
from extender.client.connections import make_client_context
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource, RestConfig, load_config

_LOG: Final = logging.getLogger(__name__)

EXPIRY_MARGIN: Final = 10.0
"""Seconds before their expiry at which credentials are loaded again."""

_RETRY_SECONDS: Final = 10.0
"""Seconds until a failed load is retried while the old credentials are still valid."""

_MAX_WAIT_SECONDS: Final = 1.0
"""Seconds for which requests wait for a load while the old credentials are still valid."""


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """The credentials in use.

    Attributes:
        config: the server's address and the credentials.
        tls: the TLS context; None for plain HTTP. It changes only if a file changed, so that connections are reused.
        generation: the number of loads; it shows whether another task has already replaced rejected credentials.
    """

    config: RestConfig
    tls: ssl.SSLContext | None
    generation: int


class Credentials:
    """Loads credentials and caches them, for the tasks of one event loop: one task loads, the others wait.

    They go on with the old credentials if these are still valid and the load is slow. client-go has no such limit, so
    a slow exec plugin stops its requests, also the renewal of the lease.
    """

    def __init__(self, source: CredentialSource, clock: Clock) -> None:
        self._source = source
        self.clock = clock
        self._active: ActiveConfig | None = None
        self._loaded_at = self._refresh_at = 0.0
        self._tls: tuple[object, ssl.SSLContext | None] = (None, None)
        self._refreshing: asyncio.Future[None] | None = None

    async def get_current_config(self) -> ActiveConfig:
        """Return the credentials to use now.

        Raises:
            CredentialsError: there are no credentials, or they have expired and cannot be loaded again.
        """
        if self._active is None or self.clock.monotonic() >= self._refresh_at:
            refresh = self._get_refresh(force=False)
            if self._active is not None and not self._has_expired(self._active.config):
                wait_end = self._loaded_at + _MAX_WAIT_SECONDS
                done, _ = await asyncio.wait({refresh}, timeout=max(0.0, wait_end - self.clock.monotonic()))
                if not done:
                    return self._active
            await asyncio.shield(refresh)
        assert self._active is not None  # noqa: S101  _refresh sets it or raises
        return self._active

    async def get_server(self) -> str:
        """Return the address of the API server.

        Raises:
            CredentialsError: there are no credentials.
        """
        return (await self.get_current_config()).config.server

    async def replace_rejected(self, rejected_config: ActiveConfig) -> ActiveConfig:
        """Return new credentials in place of *rejected_config*; load them unless another task has done so.

        Raises:
            CredentialsError: the new credentials cannot be loaded.
        """
        if self._active is None or self._active.generation == rejected_config.generation:
            await asyncio.shield(self._get_refresh(force=True))
        assert self._active is not None  # noqa: S101
        return self._active

    def reload_soon(self, distrusted_config: ActiveConfig) -> None:
        """Have the CA read again after the certificate of the server was rejected: it may have been rotated.

        Credentials are not loaded more often than every `_RETRY_SECONDS`, because an exec plugin runs each time.
        """
        if self._active is distrusted_config:
            self._refresh_at = min(self._refresh_at, self._loaded_at + _RETRY_SECONDS)

    def _get_refresh(self, *, force: bool) -> asyncio.Future[None]:
        """Return the load of another task, or a new one. A load goes on if the tasks that wait for it are cancelled.

        Otherwise an exec plugin that takes longer than each of them waits would run again and again, in vain.
        """
        if self._refreshing is None:
            self._loaded_at = self.clock.monotonic()
            self._refreshing = asyncio.ensure_future(self._refresh(force=force))
            self._refreshing.add_done_callback(self._end_refresh)
        return self._refreshing

    def _end_refresh(self, refresh: asyncio.Future[None]) -> None:
        self._refreshing = None
        if not refresh.cancelled():
            refresh.exception()  # nobody may have waited for it

    async def _refresh(self, *, force: bool) -> None:
        now = self._loaded_at
        try:
            config, tls = await asyncio.to_thread(self._load)
        except asyncio.CancelledError:  # no task cancels a load, so the event loop ends, and waits for the thread
            kill_running_plugins()
            raise
        except CredentialsError as error:
            if self._active is None or force or self._has_expired(self._active.config):
                raise
            _LOG.warning("Credentials could not be reloaded; the old ones stay in use", extra={"err": str(error)})
            self._refresh_at = now + _RETRY_SECONDS
            return
        lifetimes = [config.refresh_after] if config.refresh_after is not None else []
        if config.expires_at is not None:
            lifetimes.append(max(config.expires_at - self.clock.now() - EXPIRY_MARGIN, _RETRY_SECONDS))
        self._refresh_at = now + min(lifetimes, default=float("inf"))
        self._active = ActiveConfig(config, tls, self._active.generation + 1 if self._active else 1)

    def _load(self) -> tuple[RestConfig, ssl.SSLContext | None]:
        """Load everything; call it in a thread, because exec plugins and disks may be slow.

        `kubectl config use-context` has no effect on a running process, as with client-go, which loads only once.
        """
        config = load_config(self._source)
        if self._active is not None and config.server != self._active.config.server:
            raise CredentialsError(f"they are for another API server, {config.server}; restart to use it")
        self._source = replace(self._source, context=config.context)
        return config, self._get_tls_context(config)

    def _has_expired(self, config: RestConfig) -> bool:
        return config.expires_at is not None and self.clock.now() >= config.expires_at

    def _get_tls_context(self, config: RestConfig) -> ssl.SSLContext | None:
        """Return the TLS context. It is replaced only if a file changed, since a new one needs new connections."""
        if not config.server.startswith("https"):
            return None
        files = (config.ca_file, config.cert_file, config.key_file)
        try:
            fingerprint = (files, config.insecure, *map(_read_certificate, files))
            if self._tls[0] != fingerprint:
                self._tls = (fingerprint, _make_tls_context(config))
        except (OSError, ssl.SSLError, InputLimitError) as error:
            raise CredentialsError(f"certificates for {config.server}: {error}") from error
        return self._tls[1]


def _read_certificate(file: str) -> bytes:
    try:
        return read_limited_file(file, MAX_CERTIFICATE_BYTES) if file else b""
    except InputLimitError as error:
        raise InputLimitError(f"{file}: {error}") from error


def _make_tls_context(config: RestConfig) -> ssl.SSLContext:
    if config.ca_file and config.insecure:  # Source: client-go/transport/transport.go, TLSConfigFor (1.36)
        reason = "specifying a root certificates file with the insecure flag is not allowed"
        raise CredentialsError(f"certificates for {config.server}: {reason}")
    field = "certificate-authority"
    try:
        context = make_client_context(ca_file=config.ca_file or None, insecure=config.insecure)
        field = "client-certificate and client-key"
        if config.cert_file:
            context.load_cert_chain(config.cert_file, config.key_file or None, refuse_passphrase)
    except ssl.SSLError as error:  # its text has no name of a file
        raise CredentialsError(f"certificates for {config.server}: {field}: {error}") from error
    return context
