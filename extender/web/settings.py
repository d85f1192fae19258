"""How the service of a standalone scheduler is reached, and who may ask it what. Source: G046 to G048."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

PORT: Final = 10259
"""kube-scheduler's. Source: G046."""

ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")


@dataclass(frozen=True, slots=True)
class Serving:
    """Where and how to serve HTTPS.

    Attributes:
        address: an IP address; unspecified ones mean all interfaces.
        port: 1 to 65535.
        certificate, key: files in PEM; both empty: the pair `kube-scheduler` in *folder*, else a self-signed one.
        folder: where to look for, and keep, the pair; empty: a self-signed one in memory.
        least_version: `VersionTLS12` or `VersionTLS13`; empty means 1.2.
        ciphers: names of suites for TLS 1.2; empty means the library's own choice.
        share_address, share_port: SO_REUSEADDR and SO_REUSEPORT.
    """

    address: str = "0.0.0.0"  # noqa: S104  kube-scheduler's default; callers are asked who they are
    port: int = PORT
    certificate: str = ""
    key: str = ""
    folder: str = ""
    least_version: str = ""
    ciphers: tuple[str, ...] = ()
    share_address: bool = False
    share_port: bool = False

    @property
    def local(self) -> bool:
        """Whether only callers on this machine get here."""
        try:
            return self.address == "localhost" or ip_address(self.address).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """A proxy that says in headers for whom it asks. Source: I030.

    Attributes:
        authority: file in PEM that its certificate must be signed by; empty: nobody is such a proxy.
        names: common names it may bear; empty: any.
        users, uids, groups: headers that name the user, the user's uid and groups.
        extras: prefixes of further headers.
    """

    authority: str = ""
    names: tuple[str, ...] = ()
    users: tuple[str, ...] = ("x-remote-user",)
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("x-remote-group",)
    extras: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class Authentication:
    """How callers are recognised.

    Attributes:
        kubeconfig: whom to ask about tokens; empty: the pod's own service account, or nobody.
        cache_seconds: how long an answer holds.
        skip_lookup: do not look for authorities in the cluster.
        tolerate_failure: go on if they cannot be looked up.
        client_authority: file in PEM; a certificate signed by it names its bearer.
        front_proxy: see there.
    """

    kubeconfig: str = ""
    cache_seconds: float = 10.0
    skip_lookup: bool = False
    tolerate_failure: bool = True
    client_authority: str = ""
    front_proxy: FrontProxy = field(default_factory=FrontProxy)


@dataclass(frozen=True, slots=True)
class Authorization:
    """What callers may ask.

    Attributes:
        kubeconfig: whom to ask about rights; empty: the pod's own service account, or nobody.
        always_allowed: paths open to all; one that ends in `*` stands for all that begin like it.
        allowed_seconds, denied_seconds: how long an answer holds.
    """

    kubeconfig: str = ""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED
    allowed_seconds: float = 10.0
    denied_seconds: float = 10.0
