"""Load the API server's address and our credentials from kubeconfig files or the pod's service account.

The `kubernetes` package reads and merges the files. This module adds: rotating token files, exec plugins with error
messages, impersonation, and kubectl's choice among several files: the first current context wins.
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
from extender.client.proxies import find_proxy

TOKEN_FILE_SECONDS: Final = 60.0
"""Seconds for which a token from a file is used before the file is read again.

Source: client-go/transport/token_source.go, NewCachedFileTokenSource (1.36).
"""

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_UNESCAPED_CHARACTERS: Final = "!#$&'*+-.^_`|~"  # in header names, beside letters and digits; as in client-go


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user to impersonate; empty fields are not sent."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def make_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers. Source: client-go/transport/round_trippers.go, impersonatingRoundTripper (1.36)."""
        headers = [("Impersonate-User", self.user)] if self.user else []
        if self.uid:
            headers.append(("Impersonate-Uid", self.uid))
        headers += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra.items():
            headers += [(f"Impersonate-Extra-{quote(key, safe=_UNESCAPED_CHARACTERS)}", value) for value in values]
        return tuple(headers)


@dataclass(frozen=True, slots=True)
class RestConfig:
    """The address and credentials of a request. Source: client-go/rest/config.go, Config (1.36).

    Attributes:
        server: the base URL without a trailing slash.
        headers: the headers of each request, including `Authorization`.
        ca_file, cert_file, key_file: files in PEM; empty if there is none.
        insecure: whether verification of the server's certificate is skipped.
        server_name: the name in the server's certificate if it is not the URL's host.
        proxy_url: the URL of the proxy; empty: no proxy.
        refresh_after: the seconds until the configuration is loaded again; None: only after a 401.
        expires_at: the expiry of an exec plugin's credentials in seconds since 1970; None: unknown.
    """

    server: str
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    insecure: bool = False
    server_name: str = ""
    proxy_url: str = ""
    refresh_after: float | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """The sources of credentials, in kubectl's order.

    Attributes:
        kubeconfig: a file that must exist; empty: the files in KUBECONFIG, else `~/.kube/config`, else the pod's
            service account.
        master: the URL of the API server; overrides the server in the kubeconfig.
        context: the context in the kubeconfig; empty: its current context.
        impersonation: the impersonation, which overrides the impersonation in the kubeconfig.
        environ: the environment.
        service_account_dir: the folder of the pod's service account.
    """

    kubeconfig: str = ""
    master: str = ""
    context: str = ""
    impersonation: Impersonation = Impersonation()
    environ: Mapping[str, str] = field(default_factory=dict)
    service_account_dir: Path = SERVICE_ACCOUNT_DIR

    def find_files(self) -> list[Path]:
        """Return the kubeconfig files that exist.

        Raises:
            CredentialsError: `kubeconfig` is set and does not exist.
        """
        if self.kubeconfig:
            kubeconfig = Path(self.kubeconfig).expanduser()
            if not kubeconfig.is_file():
                raise CredentialsError(
                    f"kubeconfig {kubeconfig} does not exist; check --kubeconfig or clientConnection.kubeconfig"
                )
            return [kubeconfig]
        environment_files = self.environ.get("KUBECONFIG", "")
        home = self.environ.get("HOME", "")
        files = [Path(name) for name in environment_files.split(":") if name]
        if not environment_files and home:
            files = [Path(home) / ".kube" / "config"]
        return [file for file in files if file.is_file()]


def load_config(source: CredentialSource) -> RestConfig:
    """Load the configuration from *source*. Blocking; an exec plugin may be slow.

    Raises:
        CredentialsError: no configuration was found, or it is invalid.
    """
    files = source.find_files()
    if files:
        return _load_kubeconfig(files, source)
    if source.environ.get("KUBERNETES_SERVICE_HOST"):
        return _load_in_cluster(source)
    if source.master:
        server = source.master.rstrip("/")
        return RestConfig(
            server, headers=source.impersonation.make_headers(), proxy_url=find_proxy(server, source.environ)
        )
    raise CredentialsError(
        "no kubeconfig: none given with --kubeconfig, none in KUBECONFIG or ~/.kube/config, "
        "and this is not a pod of a cluster"
    )


def _load_in_cluster(source: CredentialSource) -> RestConfig:
    from kubernetes.client import Configuration  # noqa: PLC0415  the import takes half a second
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    configuration = Configuration()
    token_file, ca_file = (str(source.service_account_dir / name) for name in ("token", "ca.crt"))
    try:
        loader = InClusterConfigLoader(token_file, ca_file, False, source.environ)  # type: ignore[no-untyped-call]
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise CredentialsError(f"the pod's service account: {error}") from error
    server = (source.master or str(configuration.host)).rstrip("/")
    headers = (_make_bearer_header(_read_token(Path(token_file))), *source.impersonation.make_headers())
    return RestConfig(
        server,
        headers=headers,
        ca_file=ca_file,
        proxy_url=find_proxy(server, source.environ),
        refresh_after=TOKEN_FILE_SECONDS,
    )


def _load_kubeconfig(files: list[Path], source: CredentialSource) -> RestConfig:
    from kubernetes.client import Configuration  # noqa: PLC0415
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415
    from yaml import YAMLError, safe_load  # noqa: PLC0415

    file_list = ":".join(map(str, files))
    try:
        for file in files:
            _validate_kubeconfig(safe_load(file.read_bytes()), file)
        merger = KubeConfigMerger(file_list)  # type: ignore[no-untyped-call]
        current_contexts = (config.get("current-context") for config in merger.config_files.values())
        context = source.context or next(filter(None, current_contexts), None)
        if context is None:
            raise CredentialsError(f"kubeconfig {file_list}: no current-context; set one")
        _add_missing_lists(merger.config.value)
        user, base_dir = _find_user(merger.config, context)
        credential_settings = {
            key: user.pop(key) for key in ("exec", "tokenFile") if user.get(key) and not user.get("token")
        }
        loader = KubeConfigLoader(merger.config, active_context=context, config_base_path=None)  # type: ignore[no-untyped-call]
        configuration = Configuration()
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        exec_status = (
            _run_exec_plugin(credential_settings["exec"], base_dir, _find_cluster(merger.config, context))
            if "exec" in credential_settings
            else {}
        )
    except (ConfigException, YAMLError, OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise CredentialsError(f"kubeconfig {file_list}: {error}") from error
    return _build_config(source, configuration, user, credential_settings, exec_status, base_dir)


def _validate_kubeconfig(config: Any, file: Path) -> None:
    """Check that each entry in the lists of a kubeconfig has a name and a mapping. The package does not check it.

    Raises:
        CredentialsError: an entry has no name or no mapping.
    """
    if config is None:
        raise CredentialsError(f"kubeconfig {file}: the file is empty")
    if not isinstance(config, dict):
        raise CredentialsError(f"kubeconfig {file}: want a mapping with clusters, contexts and users")
    for kind in ("cluster", "context", "user"):
        entries = config.get(f"{kind}s") or []
        if not isinstance(entries, list):
            raise CredentialsError(f"kubeconfig {file}: {kind}s: want a list")
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise CredentialsError(f"kubeconfig {file}: {kind}s[{index}]: want a mapping with a name")
            if not isinstance(entry.get(kind) or {}, dict):
                raise CredentialsError(f"kubeconfig {file}: {kind}s[{index}].{kind}: want a mapping")


def _add_missing_lists(config: dict[str, Any]) -> None:
    """Replace absent or null lists by empty ones, since the package fails on them."""
    for name in ("clusters", "contexts", "users"):
        config[name] = config.get(name) or []


def _find_user(config: Any, context: str) -> tuple[dict[str, Any], Path]:
    """Return the context's user, a mapping that the caller may change, and the base folder of its paths."""
    name = config["contexts"].get_with_name(context)["context"].safe_get("user")
    user_node = config["users"].get_with_name(name, safe=True) if name and config.value["users"] else None
    if user_node is None:
        return {}, Path()
    user: dict[str, Any] = user_node.value.get("user") or {}
    user_node.value["user"] = user
    return user, Path(user_node.path).resolve().parent


def _find_cluster(config: Any, context: str) -> Any:
    name = config["contexts"].get_with_name(context)["context"]["cluster"]
    return config["clusters"].get_with_name(name)["cluster"]


def _run_exec_plugin(settings: dict[str, Any], base_dir: Path, cluster: Any) -> dict[str, Any]:
    """Run an exec plugin, and return the status of its ExecCredential."""
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.exec_provider import ExecProvider  # noqa: PLC0415
    from kubernetes.config.kube_config import ConfigNode  # noqa: PLC0415

    command = str(settings.get("command", ""))
    if "/" in command and not Path(command).is_absolute():
        settings = {**settings, "command": str(base_dir / command)}
    node = ConfigNode("exec", settings)  # type: ignore[no-untyped-call]
    try:
        status: dict[str, Any] = ExecProvider(node, str(base_dir), cluster).run()  # type: ignore[no-untyped-call]
    except FileNotFoundError as error:
        hint = settings.get("installHint")
        raise CredentialsError(f"exec plugin {command} is not installed" + (f": {hint}" if hint else "")) from error
    except (ConfigException, OSError) as error:
        raise CredentialsError(f"exec plugin {command}: {error}") from error
    if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
        raise CredentialsError(f"exec plugin {command} returned neither a token nor a certificate with its key")
    return status


def _build_config(
    source: CredentialSource,
    configuration: Any,
    user: dict[str, Any],
    credential_settings: dict[str, Any],
    exec_status: dict[str, Any],
    base_dir: Path,
) -> RestConfig:
    """Build the config from the package's *configuration* and from the settings that this module handles."""
    authorization = configuration.get_api_key_with_prefix("BearerToken")
    headers = [("Authorization", " ".join(authorization.split()))] if authorization else []
    refresh_after = None
    if credential_settings.get("tokenFile") and not authorization:
        headers = [_make_bearer_header(_read_token(base_dir / credential_settings["tokenFile"]))]
        refresh_after = TOKEN_FILE_SECONDS
    elif exec_status.get("token") and not authorization:
        headers = [_make_bearer_header(exec_status["token"])]
    expiry = exec_status.get("expirationTimestamp")
    certificate, key = configuration.cert_file or "", configuration.key_file or ""
    if exec_status.get("clientCertificateData") and not certificate:
        certificate, key = (
            _write_pem_file(exec_status["clientCertificateData"]),
            _write_pem_file(exec_status["clientKeyData"]),
        )
    server = (source.master or str(configuration.host)).rstrip("/")
    impersonation = source.impersonation
    if impersonation == Impersonation():
        extra = {key: tuple(values) for key, values in (user.get("as-user-extra") or {}).items()}
        impersonation = Impersonation(
            user.get("as", ""), user.get("as-uid", ""), tuple(user.get("as-groups") or ()), extra
        )
    return RestConfig(
        server,
        headers=(*headers, *impersonation.make_headers()),
        ca_file=configuration.ssl_ca_cert or "",
        cert_file=certificate,
        key_file=key,
        insecure=not configuration.verify_ssl,
        server_name=getattr(configuration, "tls_server_name", None) or "",
        proxy_url=configuration.proxy or find_proxy(server, source.environ),
        refresh_after=refresh_after,
        expires_at=datetime.fromisoformat(expiry).timestamp() if expiry else None,
    )


def _make_bearer_header(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token.strip()}"


def _read_token(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise CredentialsError(f"token file {file}: {error.strerror}") from error
    if not token:
        raise CredentialsError(f"token file {file} is empty")
    return token


_PEM_FILES: Final[dict[str, str]] = {}


def _write_pem_file(pem: str) -> str:
    """Return the path of a private file with *pem*. The ssl module reads certificates only from files."""
    if pem not in _PEM_FILES:
        with NamedTemporaryFile("w", suffix=".pem", delete=False) as file:
            file.write(pem)
        atexit.register(Path(file.name).unlink, missing_ok=True)
        _PEM_FILES[pem] = file.name
    return _PEM_FILES[pem]
