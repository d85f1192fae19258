"""Where the API server is and who we are, as a kubeconfig or the pod we run in says; read anew each time.

Reading and merging is the `kubernetes` package's work. Done here, because there it is missing or kept too long: token
files that rotate, exec plugins (whose failures it only logs), impersonation, and the rule that the first of several
files to name a context wins.
"""

import atexit
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final
from urllib.parse import quote

from extender.client.errors import CredentialsError
from extender.client.proxies import proxy_for

TOKEN_FILE_SECONDS: Final = 60.0
"""How long a token that was read from a file is used before the file is read again. Source: client-go's transport."""

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_HEADER_KEY: Final = "!#$&'*+-.^_`|~"  # beside letters and digits; the rest is escaped, as client-go does


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom to act as; empty fields say nothing."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that say so. Source: client-go's transport."""
        found = [("Impersonate-User", self.user)] if self.user else []
        if self.uid:
            found.append(("Impersonate-Uid", self.uid))
        found += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            found += [(f"Impersonate-Extra-{quote(key, safe=_HEADER_KEY)}", value) for value in values]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Identity:
    """All that is needed for a request.

    Attributes:
        server: base URL without a slash at the end.
        headers: to send with each request, `Authorization` among them.
        ca, certificate, key: files in PEM, empty where there is none.
        insecure: the server's certificate is not checked.
        server_name: the name its certificate must bear, if not that of the URL.
        proxy: URL of the proxy; empty: none.
        good_for: seconds until it should be read again; None: until it is refused.
        good_until: seconds since 1970 after which it is worthless, as an exec plugin says; None: it says nothing.
    """

    server: str
    headers: tuple[tuple[str, str], ...] = ()
    ca: str = ""
    certificate: str = ""
    key: str = ""
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    good_for: float | None = None
    good_until: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read from, in the order kubectl looks.

    Attributes:
        kubeconfig: a file that must exist; empty: the files that KUBECONFIG lists, else `~/.kube/config`, else the
            pod's service account.
        master: URL of the API server; wins over what the file says.
        context: of the kubeconfig; empty: its current one.
        impersonation: wins over what the file says.
        environ: the environment.
        service_account: where a pod finds its own.
    """

    kubeconfig: str = ""
    master: str = ""
    context: str = ""
    impersonation: Impersonation = Impersonation()
    environ: Mapping[str, str] = field(default_factory=dict)
    service_account: Path = SERVICE_ACCOUNT

    def files(self) -> list[Path]:
        """The kubeconfig files that are there.

        Raises:
            CredentialsError: the one asked for is not.
        """
        if self.kubeconfig:
            asked = Path(self.kubeconfig).expanduser()
            if not asked.is_file():
                raise CredentialsError(
                    f"kubeconfig {asked} does not exist; check --kubeconfig or clientConnection.kubeconfig"
                )
            return [asked]
        listed = self.environ.get("KUBECONFIG", "")
        home = self.environ.get("HOME", "")
        names = [Path(name) for name in listed.split(":") if name]
        if not listed and home:
            names = [Path(home) / ".kube" / "config"]
        return [name for name in names if name.is_file()]


def read(place: Place) -> Identity:
    """Reads it all. Blocking; an exec plugin may take its time.

    Raises:
        CredentialsError: there is nothing, or something is wrong with it.
    """
    files = place.files()
    if files:
        return _from_files(files, place)
    if place.environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(place)
    if place.master:
        server = place.master.rstrip("/")
        return Identity(server, headers=place.impersonation.headers(), proxy=proxy_for(server, place.environ))
    raise CredentialsError(
        "no kubeconfig: none given with --kubeconfig, none in KUBECONFIG or ~/.kube/config, "
        "and this is not a pod of a cluster"
    )


def _in_cluster(place: Place) -> Identity:
    from kubernetes.client import Configuration  # noqa: PLC0415  half a second that only talking to a cluster should cost
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    found = Configuration()
    token, ca = (str(place.service_account / name) for name in ("token", "ca.crt"))
    try:
        loader = InClusterConfigLoader(token, ca, False, place.environ)  # type: ignore[no-untyped-call]
        loader.load_and_set(found)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as fault:
        raise CredentialsError(f"the pod's service account: {fault}") from fault
    server = (place.master or str(found.host)).rstrip("/")
    headers = (_bearer(_token_in(Path(token))), *place.impersonation.headers())
    return Identity(server, headers=headers, ca=ca, proxy=proxy_for(server, place.environ), good_for=TOKEN_FILE_SECONDS)


def _from_files(files: list[Path], place: Place) -> Identity:
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415
    from yaml import YAMLError, safe_load  # noqa: PLC0415

    shown = ":".join(map(str, files))
    try:
        for file in files:
            _check(safe_load(file.read_bytes()), file)
        merged = KubeConfigMerger(shown)  # type: ignore[no-untyped-call]
        first = (config.get("current-context") for config in merged.config_files.values())
        context = place.context or next(filter(None, first), None)
        if context is None:
            raise CredentialsError(f"kubeconfig {shown}: no current-context; set one")
        _fill(merged.config.value)
        user, base = _user_of(merged.config, context)
        own = {key: user.pop(key) for key in ("exec", "tokenFile") if user.get(key) and not user.get("token")}
        loader = KubeConfigLoader(merged.config, active_context=context, config_base_path=None)  # type: ignore[no-untyped-call]
        found = Configuration()
        loader.load_and_set(found)  # type: ignore[no-untyped-call]
        status = _run_plugin(own["exec"], base, _cluster_of(merged.config, context)) if "exec" in own else {}
    except (ConfigException, YAMLError, OSError, KeyError, TypeError, AttributeError, ValueError) as fault:
        raise CredentialsError(f"kubeconfig {shown}: {fault}") from fault
    return _identity(place, found, user, own, status, base)


def _check(config: Any, file: Path) -> None:
    """The lists of a kubeconfig are lists of entries, each with a name and a mapping; the package takes that as given.

    Raises:
        CredentialsError: it is not so.
    """
    if config is None:
        raise CredentialsError(f"kubeconfig {file}: the file is empty")
    if not isinstance(config, dict):
        raise CredentialsError(f"kubeconfig {file}: want a mapping with clusters, contexts and users")
    for kind in ("cluster", "context", "user"):
        entries = config.get(f"{kind}s") or []
        if not isinstance(entries, list):
            raise CredentialsError(f"kubeconfig {file}: {kind}s: want a list")
        for at, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise CredentialsError(f"kubeconfig {file}: {kind}s[{at}]: want a mapping with a name")
            if not isinstance(entry.get(kind) or {}, dict):
                raise CredentialsError(f"kubeconfig {file}: {kind}s[{at}].{kind}: want a mapping")


def _fill(config: dict[str, Any]) -> None:
    """Lists that are absent or null are empty; the package trips over them."""
    for name in ("clusters", "contexts", "users"):
        config[name] = config.get(name) or []


def _user_of(config: Any, context: str) -> tuple[dict[str, Any], Path]:
    """The entry of the context's user, which the caller may change, and the folder its paths start from."""
    name = config["contexts"].get_with_name(context)["context"].safe_get("user")
    node = config["users"].get_with_name(name, safe=True) if name and config.value["users"] else None
    if node is None:
        return {}, Path()
    user: dict[str, Any] = node.value.get("user") or {}
    node.value["user"] = user
    return user, Path(node.path).resolve().parent


def _cluster_of(config: Any, context: str) -> Any:
    name = config["contexts"].get_with_name(context)["context"]["cluster"]
    return config["clusters"].get_with_name(name)["cluster"]


def _run_plugin(settings: dict[str, Any], base: Path, cluster: Any) -> dict[str, Any]:
    """What an exec plugin answers."""
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.exec_provider import ExecProvider  # noqa: PLC0415
    from kubernetes.config.kube_config import ConfigNode  # noqa: PLC0415

    command = str(settings.get("command", ""))
    if "/" in command and not Path(command).is_absolute():
        settings = {**settings, "command": str(base / command)}
    node = ConfigNode("exec", settings)  # type: ignore[no-untyped-call]
    try:
        status: dict[str, Any] = ExecProvider(node, str(base), cluster).run()  # type: ignore[no-untyped-call]
    except FileNotFoundError as fault:
        hint = settings.get("installHint")
        raise CredentialsError(f"exec plugin {command} is not installed" + (f": {hint}" if hint else "")) from fault
    except (ConfigException, OSError) as fault:
        raise CredentialsError(f"exec plugin {command}: {fault}") from fault
    if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
        raise CredentialsError(f"exec plugin {command} gave neither a token nor a certificate with its key")
    return status


def _identity(
    place: Place, found: Any, user: dict[str, Any], own: dict[str, Any], status: dict[str, Any], base: Path
) -> Identity:
    """What the package found, and what it leaves to us."""
    authorization = found.get_api_key_with_prefix("BearerToken")
    headers = [("Authorization", " ".join(authorization.split()))] if authorization else []
    good_for = None
    if own.get("tokenFile") and not authorization:
        headers = [_bearer(_token_in(base / own["tokenFile"]))]
        good_for = TOKEN_FILE_SECONDS
    elif status.get("token") and not authorization:
        headers = [_bearer(status["token"])]
    expiry = status.get("expirationTimestamp")
    certificate, key = found.cert_file or "", found.key_file or ""
    if status.get("clientCertificateData") and not certificate:
        certificate, key = _kept(status["clientCertificateData"]), _kept(status["clientKeyData"])
    server = (place.master or str(found.host)).rstrip("/")
    as_whom = place.impersonation
    if as_whom == Impersonation():
        extra = {key: tuple(values) for key, values in (user.get("as-user-extra") or {}).items()}
        as_whom = Impersonation(user.get("as", ""), user.get("as-uid", ""), tuple(user.get("as-groups") or ()), extra)
    return Identity(
        server,
        headers=(*headers, *as_whom.headers()),
        ca=found.ssl_ca_cert or "",
        certificate=certificate,
        key=key,
        insecure=not found.verify_ssl,
        server_name=getattr(found, "tls_server_name", None) or "",
        proxy=found.proxy or proxy_for(server, place.environ),
        good_for=good_for,
        good_until=datetime.fromisoformat(expiry).timestamp() if expiry else None,
    )


def _bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token.strip()}"


def _token_in(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except OSError as fault:
        raise CredentialsError(f"token file {file}: {fault.strerror}") from fault
    if not token:
        raise CredentialsError(f"token file {file} is empty")
    return token


_KEPT: Final[dict[str, str]] = {}


def _kept(pem: str) -> str:
    """A file with that content, readable to us alone; Python's TLS takes certificates from files only."""
    if pem not in _KEPT:
        with NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
            file.write(pem)
        atexit.register(Path(file.name).unlink, missing_ok=True)
        _KEPT[pem] = file.name
    return _KEPT[pem]
