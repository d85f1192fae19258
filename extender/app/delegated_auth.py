"""Delegated authentication and authorization: the API server reviews the callers of the HTTP ports.

The CAs of client certificates and the front proxy settings are read from files, or from the API server.

Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.ApplyTo,
DelegatingAuthenticationOptions.AddFlags; apiserver/pkg/server/options/authorization.go,
DelegatingAuthorizationOptions.toAuthorizer, DelegatingAuthorizationOptions.AddFlags (1.36).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from cryptography import x509

from extender.app.reload import ReloadError
from extender.basics.clock import SystemClock
from extender.basics.input_limits import MAX_CERTIFICATE_BYTES, InputLimitError, read_limited_file
from extender.client.connections import PendingRequests
from extender.client.credentials import Credentials
from extender.client.errors import ApiError, CredentialsError
from extender.client.kubeconfig import CredentialSource
from extender.client.transport import AttemptObserver, Request, Transport
from extender.client.writer import Writer
from extender.config.model import ClientConnection
from extender.metrics.client_metrics import ClientMetrics
from extender.serving.authentication import DECODE_ERRORS, Authenticator, Reviewer, ReviewError
from extender.serving.authorization import Authorizer
from extender.serving.rejection_log import RejectionLog
from extender.serving.serving_options import AuthenticationOptions, AuthorizationOptions, FrontProxyOptions
from extender.serving.tls import ServingCertificate

log = logging.getLogger("extender.app")

_AUTHENTICATION_CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_TIMEOUT_SECONDS: Final = 10.0

_CONNECTION: Final = ClientConnection(qps=200.0, burst=400)
"""The rate limit of reviews.

Source: apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.getClient;
apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.getClient (1.36).
"""


class DelegatedAuthError(ReloadError):
    """Delegated authentication could not be set up, or its CAs cannot be loaded again; the message is one line."""


@dataclass(frozen=True, slots=True)
class ReviewClient:
    """Creates TokenReviews and SubjectAccessReviews (implements `serving.authentication.Reviewer`)."""

    writer: Writer
    _pending: PendingRequests = field(init=False, default_factory=PendingRequests)
    _log: RejectionLog = field(init=False, default_factory=lambda: RejectionLog("Cannot review a caller"))

    async def review(self, kind: str, body: Mapping[str, Any]) -> bytes:
        """Create a review and return the response.

        Raises:
            ReviewError: the request and its retries failed or took too long, or too many wait: a caller that closes
                its connection does not end its review, so callers without credentials could use any amount of memory.
        """
        if not self._pending.has_capacity():
            raise self._make_error(kind, f"{self._pending.count} reviews are pending")
        try:
            with self._pending.include_request():
                async with asyncio.timeout(_TIMEOUT_SECONDS):  # for the retries as well
                    return await self.writer.create(kind, "", body)
        except ApiError as error:
            raise self._make_error(kind, str(error)) from error
        except TimeoutError as error:
            raise self._make_error(kind, f"no result within {_TIMEOUT_SECONDS:g} s") from error

    def _make_error(self, kind: str, reason: str) -> ReviewError:
        self._log.log({"kind": kind, "err": reason}, asyncio.get_running_loop().time())
        return ReviewError(reason)


@asynccontextmanager
async def open_review_client(credentials: Credentials, observe: AttemptObserver) -> AsyncIterator[ReviewClient]:
    """Open a client with a transport of its own, so that callers without credentials cannot delay bindings."""
    transport = Transport(credentials, _CONNECTION, observe=observe)
    try:
        yield ReviewClient(Writer(transport))
    finally:
        await transport.close()


@dataclass(slots=True)
class DelegatedAuth:
    """The authenticator and the authorizer of requests, and what they trust.

    Attributes:
        token_transport: the transport to the API server with the ConfigMap of CAs; None: there is none.
        client_ca, proxy_ca: the CAs of clients and of front proxies as PEM; empty: there are none.
    """

    options: AuthenticationOptions
    authenticator: Authenticator
    authorizer: Authorizer
    token_transport: Transport | None
    client_ca: str = ""
    proxy_ca: str = ""

    @property
    def client_cas(self) -> tuple[str, ...]:
        """The CAs of clients and of front proxies, for TLS."""
        return tuple(pem for pem in (self.client_ca, self.proxy_ca) if pem)

    async def refresh(self, certificate: ServingCertificate) -> bool:
        """Load the CAs again, have *certificate* trust them, and return whether they changed.

        Raises:
            DelegatedAuthError: they cannot be loaded; the old ones stay in force.
        """
        is_changed = await self.load_cas(replace(self.options, tolerate_lookup_failure=False))
        if is_changed:
            certificate.trust_cas(self.client_cas)
        return is_changed

    async def load_cas(self, options: AuthenticationOptions) -> bool:
        """Load the CAs and the front proxy settings, and return whether they changed. CAs that are missing now stay.

        Raises:
            DelegatedAuthError: they cannot be loaded; the old ones stay in force.

        Source: apiserver/pkg/server/dynamiccertificates/configmap_cafile_content.go,
        ConfigMapCAController.loadCABundle (1.36).
        """
        client_ca, proxy_ca, front_proxy = await _load_cas(options, self.token_transport)
        client_ca = client_ca or self.client_ca
        settings = self.authenticator.settings
        if proxy_ca:
            settings = replace(settings, front_proxy=front_proxy)
        proxy_ca = proxy_ca or self.proxy_ca
        if (client_ca, proxy_ca, settings) == (self.client_ca, self.proxy_ca, self.authenticator.settings):
            return False
        client_cas, front_proxy_cas = _parse_certificates(client_ca), _parse_certificates(proxy_ca)
        self.authenticator.client_cas, self.authenticator.front_proxy_cas = client_cas, front_proxy_cas
        self.client_ca, self.proxy_ca, self.authenticator.settings = client_ca, proxy_ca, settings
        return True


def _open_transport(
    stack: AsyncExitStack, kubeconfig: str, flag: str, credential_source: CredentialSource
) -> Transport | None:
    """Return a transport to the API server for reviews; None if there is no kubeconfig and this is not a pod.

    Raises:
        DelegatedAuthError: the kubeconfig, which *flag* names, does not exist.
    """
    environ = credential_source.environ
    if not kubeconfig and not environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    # Without a kubeconfig the pod's service account is used, never the environment variable KUBECONFIG.
    in_cluster = {key: environ[key] for key in environ if key.startswith("KUBERNETES_SERVICE_")}
    source = CredentialSource(kubeconfig=kubeconfig, environ=environ if kubeconfig else in_cluster)
    try:
        source.find_files()
    except CredentialsError as error:
        raise DelegatedAuthError(f"{flag} {kubeconfig} does not exist or is not a regular file") from error
    transport = Transport(Credentials(source, SystemClock()), _CONNECTION)
    stack.push_async_callback(transport.close)
    return transport


@asynccontextmanager
async def open_delegated_auth(
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
    credential_source: CredentialSource,
    metrics: ClientMetrics,
    get_client_ca_file_cas: Callable[[], tuple[x509.Certificate, ...]],
) -> AsyncIterator[DelegatedAuth]:
    """Build the authenticator and the authorizer; read CA files and the cluster's authentication ConfigMap.

    The connections to the API server are closed when the block ends.

    *get_client_ca_file_cas* returns the CAs that `authentication.client_ca_file` contains now.

    Raises:
        DelegatedAuthError: a file cannot be used, or the ConfigMap cannot be read and failures are not tolerated.
    """
    async with AsyncExitStack() as stack:
        token_transport = _open_transport(
            stack, authentication.kubeconfig, "--authentication-kubeconfig", credential_source
        )
        access_transport = _open_transport(
            stack, authorization.kubeconfig, "--authorization-kubeconfig", credential_source
        )
        if token_transport is None:
            log.warning("No API server for token reviews: callers with a token are anonymous")
        if access_transport is None:
            log.warning("No API server for access reviews: only the always allowed paths can be read")
        authenticator = Authenticator(
            authentication, _make_reviewer(token_transport), metrics, get_client_ca_file_cas=get_client_ca_file_cas
        )
        authorizer = Authorizer(authorization, _make_reviewer(access_transport), metrics)
        auth = DelegatedAuth(authentication, authenticator, authorizer, token_transport)
        await auth.load_cas(authentication)
        yield auth


async def _load_cas(settings: AuthenticationOptions, transport: Transport | None) -> tuple[str, str, FrontProxyOptions]:
    """Return the client CA and the front proxy CA as PEM, and the front proxy settings, perhaps those of the cluster.

    The client CA is empty if a client CA file is configured.
    """
    data: Mapping[str, str] = {}
    if transport is not None and not settings.skip_lookup:
        data = await _read_authentication_config_map(transport, settings)
    client_ca = "" if settings.client_ca_file else data.get("client-ca-file", "")
    proxy_ca = _read_pem(settings.front_proxy.ca_file) or data.get("requestheader-client-ca-file", "")
    front_proxy = settings.front_proxy
    if not front_proxy.ca_file and proxy_ca:
        try:
            front_proxy = _make_front_proxy_options(settings, data)
        except DelegatedAuthError as error:
            if not settings.tolerate_lookup_failure:
                raise
            log.warning("Front proxies are not trusted", extra={"err": str(error)})
            proxy_ca = ""
    return client_ca, proxy_ca, front_proxy


def _make_reviewer(transport: Transport | None) -> Reviewer | None:
    return None if transport is None else ReviewClient(Writer(transport))


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


async def _read_authentication_config_map(transport: Transport, settings: AuthenticationOptions) -> Mapping[str, str]:
    """Return the data of the ConfigMap `extension-apiserver-authentication` in kube-system."""
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):  # for the retries as well
            data = await transport.call(Request("GET", _AUTHENTICATION_CONFIG_MAP))
        return msgspec.json.decode(data, type=_ConfigMap).data or {}
    except (ApiError, TimeoutError, *DECODE_ERRORS) as error:
        reason = str(error) or f"no response within {_TIMEOUT_SECONDS:g} s"
        if not settings.tolerate_lookup_failure:
            raise DelegatedAuthError(f"client and front proxy CAs could not be looked up: {reason}") from error
        log.warning("Cannot look up client and front proxy CAs", extra={"err": reason})
        return {}


def _make_front_proxy_options(settings: AuthenticationOptions, data: Mapping[str, str]) -> FrontProxyOptions:
    """Return the front proxy settings of the ConfigMap; its lists are JSON.

    Raises:
        DelegatedAuthError: a value is no list. Without its list of names, each client of the CA could be any user.

    Source: apiserver/pkg/authentication/request/headerrequest/requestheader_controller.go, deserializeStrings (1.36).
    """

    def parse_list(key: str) -> tuple[str, ...]:
        try:
            return msgspec.json.decode(data.get(key, "") or "[]", type=tuple[str, ...])
        except msgspec.MsgspecError as error:
            raise DelegatedAuthError(f"{key} of the front proxy is no JSON list of texts: {error}") from error

    return replace(
        settings.front_proxy,
        allowed_names=parse_list("requestheader-allowed-names"),
        username_headers=parse_list("requestheader-username-headers"),
        uid_headers=parse_list("requestheader-uid-headers"),
        group_headers=parse_list("requestheader-group-headers"),
        extra_header_prefixes=parse_list("requestheader-extra-headers-prefix"),
    )


def _read_pem(file: str) -> str:
    if not file:
        return ""
    try:
        return read_limited_file(file, MAX_CERTIFICATE_BYTES).decode()
    except (InputLimitError, OSError, UnicodeDecodeError) as error:
        reason = "not text" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None) or error
        raise DelegatedAuthError(f"unable to load client CA: open {file}: {reason}") from error


def _parse_certificates(pem: str) -> tuple[x509.Certificate, ...]:
    if not pem:
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(pem.encode()))
    except ValueError as error:
        raise DelegatedAuthError(f"a client or front proxy CA is not a certificate in PEM: {error}") from error
