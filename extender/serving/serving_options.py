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
        address: an IP address; `0.0.0.0` or `::` means all interfaces.
        port: the port, 1 to 65535.
        cert_file: the file with the certificate in PEM; empty: the certificate is in `cert_dir` or self-signed.
        key_file: the file with the private key in PEM; empty if `cert_file` is empty.
        cert_dir: the folder of `kube-scheduler.crt` and `kube-scheduler.key`. Missing files are created. Empty: a
            self-signed certificate is created in memory.
        min_tls_version: `VersionTLS12` or `VersionTLS13`; empty means TLS 1.2.
        cipher_suites: the cipher suites of TLS 1.2; empty means the defaults of OpenSSL.
    """

    address: str = "0.0.0.0"  # noqa: S104  kube-scheduler's default; requests are authenticated
    port: int = PORT
    cert_file: str = ""
    key_file: str = ""
    cert_dir: str = ""
    min_tls_version: str = ""
    cipher_suites: tuple[str, ...] = ()
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
        ca_file: the file in PEM with the CAs of the front proxies' certificates; empty: the CAs are looked up in the
            cluster.
        allowed_names: the allowed common names of front proxies; empty: any name is allowed.
        extra_header_prefixes: the prefixes of headers with extra information about the user.

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
        kubeconfig: the kubeconfig of the API server that reviews tokens. If it is empty, the pod's service account is
            used. Without a service account, tokens are not reviewed.
        token_cache_ttl: the seconds for which the review of a token is cached.
        skip_lookup: whether the lookup of CAs in the cluster is skipped.
        tolerate_lookup_failure: whether startup continues if the CAs cannot be looked up.
        client_ca_file: the file in PEM with the CAs of client certificates; empty: the CAs are looked up in the
            cluster.
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
        kubeconfig: the kubeconfig of the API server that reviews access. If it is empty, the pod's service account is
            used. Without a service account, access is not reviewed.
        always_allowed_paths: the paths that need no authorization; a trailing `*` matches any suffix.
        allowed_cache_ttl: the seconds for which a decision to allow access is cached.
        denied_cache_ttl: the seconds for which a decision to deny access is cached.
    """

    kubeconfig: str = ""
    always_allowed_paths: tuple[str, ...] = ALWAYS_ALLOWED_PATHS
    allowed_cache_ttl: float = 10.0
    denied_cache_ttl: float = 10.0
