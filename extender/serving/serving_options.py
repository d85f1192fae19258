"""Options of the HTTPS server of a standalone scheduler: address, TLS, authentication and authorization.

Source: apiserver/pkg/server/options/serving.go, SecureServingOptions.AddFlags;
apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.AddFlags;
apiserver/pkg/server/options/authorization.go, DelegatingAuthorizationOptions.AddFlags (1.36).
"""

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

PORT: Final = 10259
"""kube-scheduler's port. Source: apiserver/pkg/server/options/serving.go, SecureServingOptions.AddFlags (1.36)."""

ALWAYS_ALLOWED_PATHS: Final = ("/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The address and TLS settings of the server.

    Attributes:
        address: an IP address; an unspecified one means all interfaces.
        port: 1 to 65535.
        cert_file, key_file: in PEM; both empty: the pair `kube-scheduler` in *cert_dir*, else a self-signed one.
        cert_dir: folder of that pair, which is created if it is missing; empty: a self-signed pair in memory.
        min_tls_version: `VersionTLS12` or `VersionTLS13`; empty means 1.2.
        cipher_suites: for TLS 1.2; empty means the library's default.
        reuse_address, reuse_port: SO_REUSEADDR and SO_REUSEPORT.
    """

    address: str = "0.0.0.0"  # noqa: S104  kube-scheduler's default; requests are authenticated
    port: int = PORT
    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    min_tls_version: str = ""
    cipher_suites: tuple[str, ...] = ()
    reuse_address: bool = False
    reuse_port: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether the address is only reachable from this host."""
        try:
            return self.address == "localhost" or ip_address(self.address).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class FrontProxyOptions:
    """Options of front proxies, which name the user in request headers.

    Attributes:
        ca_file: file in PEM with the CA of their certificates; empty: there are no front proxies.
        allowed_names: allowed common names; empty: any.
        username_headers, uid_headers, group_headers: headers with the user's name, uid and groups.
        extra_header_prefixes: prefixes of headers with extra information.

    Source: apiserver/pkg/server/options/authentication.go, DelegatingAuthenticationOptions.ApplyTo (1.36).
    """

    ca_file: str = ""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_header_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class AuthenticationOptions:
    """Options of authentication.

    Attributes:
        kubeconfig: the kubeconfig of the API server that reviews tokens; empty: the service account, or no reviews.
        token_cache_ttl: seconds for which a token's review is cached.
        skip_lookup: whether the lookup of CAs in the cluster is skipped.
        tolerate_lookup_failure: whether startup continues if the CAs cannot be looked up.
        client_ca_file: file in PEM with the CAs of client certificates.
        front_proxy: options of front proxies.
    """

    kubeconfig: str = ""
    token_cache_ttl: float = 10.0
    skip_lookup: bool = False
    tolerate_lookup_failure: bool = True
    client_ca_file: str = ""
    front_proxy: FrontProxyOptions = field(default_factory=FrontProxyOptions)


@dataclass(frozen=True, slots=True)
class AuthorizationOptions:
    """Options of authorization.

    Attributes:
        kubeconfig: the kubeconfig of the API server that reviews access; empty: the service account, or no reviews.
        always_allowed_paths: paths that need no authorization; a trailing `*` matches any suffix.
        allowed_cache_ttl, denied_cache_ttl: seconds for which a decision is cached.
    """

    kubeconfig: str = ""
    always_allowed_paths: tuple[str, ...] = ALWAYS_ALLOWED_PATHS
    allowed_cache_ttl: float = 10.0
    denied_cache_ttl: float = 10.0
