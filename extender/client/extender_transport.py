"""Call one HTTP extender over its own session, with its TLS settings and limits on time and size.

Calls are not retried, and redirects are not followed. The CA, the certificate and the key are read again when their
files change; kube-scheduler reads the certificate and the key again.

Source: pkg/scheduler/extender.go, makeTransport, NewHTTPExtender, HTTPExtender.send;
kube-scheduler/config/v1/types.go, ExtenderTLSConfig; client-go/transport/transport.go, TLSConfigFor (1.36).
"""

import asyncio
import logging
import os
import ssl
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from yarl import URL

from extender.basics.input_limits import MAX_CERTIFICATE_BYTES, InputLimitError, read_limited_file
from extender.basics.private_keys import load_pair
from extender.client.connections import (
    abort_unread,
    describe_connection_error,
    make_client_context,
    open_session,
    read_body,
)
from extender.client.errors import InvalidResponseError
from extender.client.proxies import find_proxy
from extender.config.errors import ConfigError, FieldError
from extender.config.model import Extender, TLSConfig

MAX_RESPONSE_BYTES: Final = 64 << 20
"""Limit of a response's body: 5,000 whole nodes of 13 kB. kube-scheduler has no limit."""

CHECK_SECONDS: Final = 10.0
"""Seconds between two checks of the TLS files."""

_LOG: Final = logging.getLogger(__name__)


class ExtenderError(Exception):
    """A call of an extender failed; the message is for the pod's event."""


class ExtenderTransport:
    """The HTTP session with one extender. Use it in one event loop, and close it."""

    def __init__(self, extender: Extender, field_path: str) -> None:
        """Read the TLS files without opening a connection.

        *field_path* is the extender's path in the configuration, such as `extenders[0]`.

        Raises:
            ConfigError: the TLS settings are invalid.
        """
        self._base_url = extender.url_prefix.rstrip("/")
        self._timeout = extender.http_timeout
        self._session: aiohttp.ClientSession | None = None
        try:
            self._tls = ExtenderTls(extender)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ConfigError([FieldError(f"{field_path}.tlsConfig", str(error))]) from error
        tls = extender.tls_config
        self._server_name = tls.server_name if tls and self._base_url.startswith("https:") else ""
        self._proxy = find_proxy(extender.url_prefix, os.environ)
        self._checked_at = float("-inf")
        self._last_error = ""

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, verb: str, body: bytes) -> bytes:
        """Post *body* and return the response's body.

        Raises:
            ExtenderError: the request failed or timed out, or the response is too big or has a status other than 200.
        """
        url = f"{self._base_url}/{verb}"
        code = 0
        try:
            async with asyncio.timeout(self._timeout):
                await self._refresh_tls()
                async with self._open_response(url, body) as response:
                    code = response.status
                    if code != 200:
                        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {code}")
                    return await _read_body(response, url)
        except TimeoutError as error:
            phase = "reading body" if code else "awaiting headers"
            message = f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while {phase})'
            raise ExtenderError(message) from error
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            # uvloop raises RuntimeError if the peer resets a connection while TLS is set up
            description = describe_connection_error(error, "extender")
            raise ExtenderError(f'Post "{url}": {description}') from error

    async def _refresh_tls(self) -> None:
        """Read the TLS files again, at most every `CHECK_SECONDS`. Log an error once; the old ones stay in use."""
        now = asyncio.get_running_loop().time()
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at, error_message = now, ""
        try:
            await asyncio.to_thread(self._tls.refresh)
        except (OSError, ValueError) as error:
            error_message = str(error)
            if error_message != self._last_error:
                fields = {"extender": self._base_url, "err": error_message}
                _LOG.warning("TLS files cannot be read again; the old ones stay in use", extra=fields)
        self._last_error = error_message

    def _open_response(self, url: str, body: bytes) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            self._session = open_session(timeout=aiohttp.ClientTimeout(total=None))
        return self._session.post(
            URL(url),
            data=body,
            # Without compression, a small response cannot expand to a large one.
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            allow_redirects=False,
            ssl=self._tls.context or True,
            server_hostname=self._server_name or None,
            proxy=self._proxy or None,
        )


async def _read_body(response: aiohttp.ClientResponse, url: str) -> bytes:
    try:
        return await read_body(response, MAX_RESPONSE_BYTES)
    except InvalidResponseError as error:
        message = f'Post "{url}": the response has more than {MAX_RESPONSE_BYTES} bytes'
        raise ExtenderError(message) from error
    finally:
        abort_unread(response)


@dataclass(slots=True)
class ExtenderTls:
    """The TLS settings of *extender*: by default the system's CAs, and no client certificate.

    Attributes:
        context: the TLS context of new connections; None: the extender's URL has no TLS, and there are no settings.
    """

    extender: Extender
    context: ssl.SSLContext | None = field(init=False, default=None)
    _pems: tuple[bytes, ...] = field(init=False, default=(), repr=False)

    def __post_init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Read the files, and replace the context if they have changed.

        Raises:
            OSError: a file cannot be read, or is not a certificate or key.
            ValueError: a file is no certificate or key, or is a device.
        """
        settings = self.extender.tls_config or TLSConfig()
        has_ca = bool(settings.ca_file or settings.ca_data)
        insecure = settings.insecure or (self.extender.enable_https and not has_ca)
        has_client_cert = bool((settings.cert_file or settings.cert_data) and (settings.key_file or settings.key_data))
        if self.extender.url_prefix.startswith("http:") and not (has_ca or insecure or has_client_cert):
            return
        ca = _read_pem(settings.ca_data, settings.ca_file) if has_ca else b""
        certificate = _read_pem(settings.cert_data, settings.cert_file) if has_client_cert else b""
        key = _read_pem(settings.key_data, settings.key_file) if has_client_cert else b""
        if self._pems == (ca, certificate, key):
            return
        context = make_client_context(ca_pem=ca.decode("ascii", "replace") if has_ca else None, insecure=insecure)
        if has_client_cert:
            load_pair(context, certificate, key)
        self.context, self._pems = context, (ca, certificate, key)


def _read_pem(data: bytes, file: str) -> bytes:
    try:
        return data or read_limited_file(file, MAX_CERTIFICATE_BYTES)
    except InputLimitError as error:
        raise ValueError(f"{file} {error}") from error
