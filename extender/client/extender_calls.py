"""Calls to one HTTP extender: a session of its own, TLS as configured, bounds on time and size, one try, no redirect.

Source: F004 to F006, F013, F014.
"""

import asyncio
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import aiohttp
from yarl import URL

from extender.client.connections import connector, give_up
from extender.client.proxies import proxy_for
from extender.config.faults import ConfigError, Fault
from extender.config.model import Extender, TLSConfig

MAX_ANSWER: Final = 64 << 20
"""The most an answer may weigh, in bytes: 5,000 whole nodes of 13 kB. kube-scheduler has no bound."""

Observe = Callable[[str, str, int, float], None]
"""Told of each call: the extender's name, the verb, the HTTP status (0: no answer), seconds."""


def nobody(name: str, verb: str, code: int, seconds: float) -> None:
    """Reports to nobody."""


class ExtenderError(Exception):
    """An extender did not do what it was asked; the message is for the pod's event."""


class Calls:
    """The way to one extender. Use it in one event loop, and close it."""

    def __init__(self, extender: Extender, path: str, observe: Observe = nobody) -> None:
        """Reads the TLS files and opens nothing yet.

        Args:
            extender: as configured.
            path: where it stands in the configuration, such as `extenders[0]`.
            observe: told of each call.

        Raises:
            ConfigError: its TLS settings cannot be used.
        """
        self._name = extender.url_prefix
        self._base = extender.url_prefix.rstrip("/")
        self._seconds = extender.effective_timeout
        self._observe = observe
        self._session: aiohttp.ClientSession | None = None
        try:
            self._tls = tls_for(extender)
        except (OSError, ValueError) as fault:  # ssl.SSLError is an OSError
            raise ConfigError([Fault(f"{path}.tlsConfig", str(fault))]) from fault
        tls = extender.tls_config
        self._server_name = tls.server_name if tls and self._base.startswith("https:") else ""
        self._proxy = proxy_for(extender.url_prefix, os.environ)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, verb: str, body: bytes) -> bytes:
        """The answer to *body*.

        Raises:
            ExtenderError: there is none in time, or its status is not 200.
        """
        url = f"{self._base}/{verb}"
        began, code = time.perf_counter(), 0
        try:
            async with asyncio.timeout(self._seconds), self._sent(url, body) as answer:
                code = answer.status
                if code != 200:
                    raise ExtenderError(f"failed {verb} with extender at URL {url}, code {code}")
                return await _read(answer, url)
        except TimeoutError as fault:
            doing = "reading body" if code else "awaiting headers"
            text = f'Post "{url}": context deadline exceeded (Client.Timeout exceeded while {doing})'
            raise ExtenderError(text) from fault
        except (aiohttp.ClientError, OSError, ValueError) as fault:
            raise ExtenderError(f'Post "{url}": {_said(fault)}') from fault
        finally:
            self._observe(self._name, verb, code, time.perf_counter() - began)

    def _sent(self, url: str, body: bytes) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session.post(
            URL(url),
            data=body,
            # Nothing to unpack, so nothing that unpacks to more than was sent.
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            allow_redirects=False,
            ssl=True if self._tls is None else self._tls,
            server_hostname=self._server_name or None,
            proxy=self._proxy or None,
        )


async def _read(answer: aiohttp.ClientResponse, url: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in answer.content.iter_any():
            size += len(piece)
            if size > MAX_ANSWER:
                raise ExtenderError(f'Post "{url}": the answer has more than {MAX_ANSWER} bytes')
            pieces.append(piece)
    finally:
        give_up(answer)
    return b"".join(pieces)


def _said(fault: Exception) -> str:
    """What went wrong on the connection, in one line."""
    return " ".join(str(fault).split()) or type(fault).__name__


def tls_for(extender: Extender) -> ssl.SSLContext | None:
    """How to speak TLS to *extender*; None means as usual: the machine's authorities, no certificate of our own.

    Raises:
        OSError: a file cannot be read, or is no certificate or key.
        ValueError: the settings contradict each other.
    """
    settings = extender.tls_config or TLSConfig()
    with_ca = bool(settings.ca_file or settings.ca_data)
    insecure = settings.insecure or (extender.enable_https and not with_ca)
    if with_ca and insecure:
        raise ValueError("specifying a root certificates file with the insecure flag is not allowed")
    certified = bool((settings.cert_file or settings.cert_data) and (settings.key_file or settings.key_data))
    if not (with_ca or insecure or certified):
        return None
    context = ssl.create_default_context(
        cadata=_text(settings.ca_data, settings.ca_file) if with_ca else None,
    )
    # Clusters' own authorities often lack extensions that Python 3.13 began to insist on; Go does not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certified:
        with (
            _as_file(settings.cert_data, settings.cert_file) as cert,
            _as_file(settings.key_data, settings.key_file) as key,
        ):
            context.load_cert_chain(cert, key)
    return context


def _text(data: bytes, file: str) -> str:
    return (data or Path(file).read_bytes()).decode("ascii", "replace")


@contextmanager
def _as_file(data: bytes, file: str) -> Iterator[str]:
    """The name of a file with *data*, which comes before *file*; the ssl module reads certificates from files only."""
    if not data:
        yield file
        return
    with tempfile.TemporaryDirectory() as place:  # readable by nobody else
        path = Path(place) / "pem"
        path.write_bytes(data)
        yield str(path)
