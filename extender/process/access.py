"""Who may ask the service what: the API server is asked about callers, and for the authorities that vouch for them.

Source: I030, I031, G047, G048.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography import x509

from extender.basics.clock import Clock
from extender.client.credentials import Credentials
from extender.client.errors import ApiError
from extender.client.kubeconfig import Place
from extender.client.transport import Request, Transport
from extender.client.writes import Writer
from extender.config.model import ClientConnection
from extender.web.callers import Authenticator, Heard, Reviewer, ReviewError
from extender.web.rights import Authorizer
from extender.web.settings import Authentication, Authorization, FrontProxy

log = logging.getLogger("extender.process")

_AUTHORITIES: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_SECONDS: Final = 10.0


class AccessError(Exception):
    """Callers could not be recognised: a file or the API server is not as it must be; one line."""


@dataclass(frozen=True, slots=True)
class Reviews:
    """Asks the API server about callers (a `web.callers.Reviewer`)."""

    writer: Writer

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        """Create a review and give it back.

        Raises:
            ReviewError: that did not work.
        """
        try:
            return await self.writer.create(kind, "", body, seconds=_SECONDS)
        except ApiError as fault:
            log.warning("The API server could not be asked about a caller", extra={"kind": kind, "err": str(fault)})
            raise ReviewError(str(fault)) from fault


@dataclass(frozen=True, slots=True)
class Access:
    """What the service needs to know of callers.

    Attributes:
        authenticator, authorizer: say who asks, and what they may.
        authorities: PEM; TLS asks callers for a certificate signed by one of them.
        transports: to be closed at the end.
    """

    authenticator: Authenticator
    authorizer: Authorizer
    authorities: tuple[str, ...]
    transports: tuple[Transport, ...]


def _transport(kubeconfig: str, place: Place, clock: Clock, agent: str) -> Transport | None:
    """A session with the API server that callers are looked up at; None if none is named and we run in no pod."""
    if not kubeconfig and not place.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    # Without a kubeconfig it is the pod's own account, and never what a person's KUBECONFIG says.
    inside = {key: place.environ[key] for key in place.environ if key.startswith("KUBERNETES_SERVICE_")}
    chosen = Place(kubeconfig=kubeconfig, environ=place.environ if kubeconfig else inside)
    return Transport(Credentials(chosen, clock), ClientConnection(), agent, clock)


async def access(
    authentication: Authentication,
    authorization: Authorization,
    place: Place,
    clock: Clock,
    agent: str,
    heard: Heard,
    vouching: Callable[[], tuple[x509.Certificate, ...]] = tuple,
) -> Access:
    """Read files and ask the API server for whatever recognising callers takes.

    Those in the file `authentication.client_authority` are what *vouching* gives, as they are now.

    Raises:
        AccessError: a file cannot be used, or a look-up failed that must not.
    """
    asked = _transport(authentication.kubeconfig, place, clock, agent)
    judged = _transport(authorization.kubeconfig, place, clock, agent)
    if asked is None:
        log.warning("Nobody can be asked about tokens: callers with one are anonymous")
    if judged is None:
        log.warning("Nobody can be asked about rights: only paths that are open to all can be read")
    transports = tuple(each for each in (asked, judged) if each is not None)
    try:
        clients, proxies, settings = await _vouching(authentication, asked)
        return Access(
            Authenticator(
                settings,
                _reviewer(asked),
                heard,
                _certificates(clients),
                _certificates(proxies),
                renewed=vouching,
            ),
            Authorizer(authorization, _reviewer(judged), heard),
            tuple(each for each in (clients, proxies) if each),
            transports,
        )
    except AccessError:
        for transport in transports:
            await transport.close()
        raise


async def _vouching(settings: Authentication, asked: Transport | None) -> tuple[str, str, Authentication]:
    """The authorities of clients and of front proxies, in PEM; and *settings* with what the cluster says of proxies.

    Those of clients are the cluster's, unless a file is named.
    """
    looked_up = {} if asked is None or settings.skip_lookup else await _looked_up(asked, settings)
    clients = "" if settings.client_authority else looked_up.get("client-ca-file", "")
    proxies = _pem(settings.front_proxy.authority) or looked_up.get("requestheader-client-ca-file", "")
    if not settings.front_proxy.authority and proxies:
        settings = replace(settings, front_proxy=_front_proxy(settings, looked_up))
    return clients, proxies, settings


def _reviewer(transport: Transport | None) -> Reviewer | None:
    return None if transport is None else Reviews(Writer(transport))


async def _looked_up(transport: Transport, settings: Authentication) -> Mapping[str, str]:
    """What the cluster says of itself in kube-system."""
    try:
        found = msgspec.json.decode(await transport.call(Request("GET", _AUTHORITIES, seconds=_SECONDS)))
        return {str(key): str(value) for key, value in found.get("data", {}).items()}
    except (ApiError, msgspec.MsgspecError) as fault:
        if not settings.tolerate_failure:
            raise AccessError(f"client authorities could not be looked up: {fault}") from fault
        log.warning("Client authorities could not be looked up; certificates name nobody", extra={"err": str(fault)})
        return {}


def _front_proxy(settings: Authentication, looked_up: Mapping[str, str]) -> FrontProxy:
    """What the cluster says of its front proxies; lists stand there as JSON."""

    def listed(key: str) -> tuple[str, ...]:
        try:
            return tuple(str(item) for item in json.loads(looked_up.get(key, "") or "[]"))
        except (ValueError, TypeError):
            return ()

    return replace(
        settings.front_proxy,
        names=listed("requestheader-allowed-names"),
        users=listed("requestheader-username-headers"),
        uids=listed("requestheader-uid-headers"),
        groups=listed("requestheader-group-headers"),
        extras=listed("requestheader-extra-headers-prefix"),
    )


def _pem(file: str) -> str:
    if not file:
        return ""
    try:
        return Path(file).read_text()
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "not text"
        raise AccessError(f"unable to load client CA: open {file}: {why}") from fault


def _certificates(pem: str) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as fault:
        raise AccessError(f"a client authority is not a certificate in PEM: {fault}") from fault
