"""Load the API server's address and our credentials from kubeconfig files or the pod's service account.

This module reads the files. `static_credentials` interprets them, or the `kubernetes` package for auth providers.
Impersonation, exec plugins and token files that rotate are supported. `input_limits` bounds everything that is read.
If several files set a current context, the first one applies, as in kubectl.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from yarl import URL

from extender.basics.input_limits import (
    MAX_CREDENTIAL_BYTES,
    MAX_KUBECONFIG_BYTES,
    InputLimitError,
    read_limited_file,
    shorten,
)
from extender.client.auth.exec_plugin import run_exec_plugin
from extender.client.auth.static_credentials import (
    Entry,
    drop_cleartext_credentials,
    find_context,
    make_static_configuration,
    validate_kubeconfig,
    write_pem_file,
)
from extender.client.errors import CredentialsError
from extender.client.proxies import find_proxy
from extender.config.documents import parse_document
from extender.config.errors import ConfigError

TOKEN_FILE_SECONDS: Final = 60.0
"""Seconds for which a token or certificate from a file is used before the file is read again.

Source: client-go/transport/token_source.go, NewCachedFileTokenSource; client-go/transport/ca_rotation.go (1.36).
"""

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f]")
_UNESCAPED_CHARACTERS: Final = "!#$&'*+-.^_`|~"  # in header names, besides letters and digits; as in client-go


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
        refresh_after: the seconds until the configuration is loaded again; None: it is not loaded periodically.
        expires_at: the expiry of an exec plugin's credentials in seconds since 1970; None: unknown.
        context: the context of the kubeconfig; empty without a kubeconfig.
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
    context: str = ""

    def __post_init__(self) -> None:
        """Raise a CredentialsError for a control character in a header: each request would fail unexpectedly."""
        for name, value in self.headers:
            if _CONTROL_CHARACTER.search(value):
                raise CredentialsError(f"the value of the header {name!r} has a line break or a control character")


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """The sources of credentials, in kubectl's order.

    Attributes:
        kubeconfig: a file that must exist; empty: the files in KUBECONFIG, else `~/.kube/config`, else the pod's
            service account.
        master: the URL of the API server; overrides the server in the kubeconfig.
        context: the context in the kubeconfig; empty: its current context.
        impersonation: the user to impersonate; replaces the kubeconfig's impersonation if any field is set.
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
            kubeconfig = Path(os.path.expanduser(self.kubeconfig))  # noqa: PTH111  the other raises for unknown users
            if not kubeconfig.is_file():
                raise CredentialsError(
                    f"kubeconfig {kubeconfig} does not exist or is not a regular file; "
                    "check --kubeconfig or clientConnection.kubeconfig"
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
    config = _load_unchecked_config(source)
    _check_url(config.server, "server", "--master, or the server in the kubeconfig")
    if config.proxy_url:
        _check_url(config.proxy_url, "proxy", "HTTPS_PROXY, HTTP_PROXY, or proxy-url in the kubeconfig")
    return config


def _check_url(text: str, name: str, setting: str) -> None:
    """Check that *text* is the URL of a server or a proxy.

    Raises:
        CredentialsError: it is not; *setting* names where to change it.
    """
    try:
        url = URL(text)
        reason = "" if url.scheme in {"http", "https"} and url.host else "no http or https"
        (url.host or "").encode("idna")  # as the resolver does
        if not reason and name == "server" and url.raw_user is not None:
            reason = "a user is not supported here"
    except ValueError as error:
        reason = "an invalid host name" if isinstance(error, UnicodeError) else str(error)
    if reason:
        shown = re.sub("//[^/]*@", "//...@", shorten(text))
        raise CredentialsError(f'"{shown}" is not the URL of a {name}: {reason}; change {setting}')


def _load_unchecked_config(source: CredentialSource) -> RestConfig:
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


def load_context_namespace(source: CredentialSource) -> str:
    """Return the namespace of the context, or `default` if it has none. In a pod, return the pod's namespace.

    Raises:
        CredentialsError: a kubeconfig is invalid.

    Source: client-go/tools/clientcmd/client_config.go, DirectClientConfig.Namespace (1.36).
    """
    files = source.find_files()
    if not files:
        namespace_file = source.service_account_dir / "namespace"
        return namespace_file.read_text().strip() if namespace_file.is_file() else "default"
    configs = []
    for file in files:
        try:
            configs.append(_read_kubeconfig(file))
        except OSError as error:
            raise CredentialsError(f"kubeconfig {file}: {error.strerror}") from error
    name = source.context or next(filter(None, (config.get("current-context") for config in configs)), None)
    contexts = (entry for config in configs for entry in config.get("contexts") or [])
    context = next((entry.get("context") or {} for entry in contexts if entry["name"] == name), {})
    return str(context.get("namespace") or "default")


def _load_in_cluster(source: CredentialSource) -> RestConfig:
    """Return the address and credentials of a pod. Source: client-go/rest/config.go, InClusterConfig (1.36)."""
    host, port = (source.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    token_file, ca_file = (source.service_account_dir / name for name in ("token", "ca.crt"))
    for file in (token_file, ca_file):
        if not file.is_file():
            raise CredentialsError(f"the pod's service account: {file} does not exist")
    if not port:
        raise CredentialsError("the pod's service account: KUBERNETES_SERVICE_PORT is not set")
    server = (source.master or f"https://{f'[{host}]' if ':' in host else host}:{port}").rstrip("/")
    headers = (_make_bearer_header(_read_token(token_file)), *source.impersonation.make_headers())
    return RestConfig(
        server,
        headers=headers,
        ca_file=str(ca_file),
        proxy_url=find_proxy(server, source.environ),
        refresh_after=TOKEN_FILE_SECONDS,
    )


def _load_kubeconfig(files: list[Path], source: CredentialSource) -> RestConfig:
    file_list = ":".join(map(str, files))
    try:
        configs = {str(file): _read_kubeconfig(file) for file in files}
        current_contexts = (config.get("current-context") for config in configs.values())
        context = source.context or next(filter(None, current_contexts), None)
        if context is None:
            raise CredentialsError(f"kubeconfig {file_list}: no current-context; set one")
        cluster, user = find_context(configs, context)
        user = drop_cleartext_credentials(user, source.master or cluster.values.get("server") or "")
        credential_settings = {key: user.values.pop(key) for key in ("exec", "tokenFile") if user.values.get(key)}
        if user.values.get("token") or "tokenFile" in credential_settings:
            credential_settings.pop("exec", None)
        configuration = (
            _load_auth_provider(cluster, user)
            if "auth-provider" in user.values
            else make_static_configuration(cluster, user)
        )
        cluster_with_ca = {**cluster.values, "certificate-authority": configuration.ssl_ca_cert}
        exec_status = (
            run_exec_plugin(credential_settings["exec"], user.folder, cluster_with_ca)
            if "exec" in credential_settings
            else {}
        )
        return _build_config(replace(source, context=context), configuration, user, credential_settings, exec_status)
    except (OSError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CredentialsError(f"kubeconfig {file_list}: {shorten(str(error))}") from error


def _load_auth_provider(cluster: Entry, user: Entry) -> Any:
    """Return the Configuration of the `kubernetes` package for a user with an auth provider."""
    from kubernetes.client import Configuration  # noqa: PLC0415  the import takes a fifth of a second
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader  # noqa: PLC0415

    configuration = Configuration()
    context = Entry({"cluster": "cluster", "user": "user"}, Path())
    kubeconfig = {  # the package finds files relative to the path of a node
        f"{kind}s": [ConfigNode(kind, {"name": kind, kind: entry.values}, str(entry.folder / "config"))]  # type: ignore[no-untyped-call]
        for kind, entry in (("cluster", cluster), ("user", user), ("context", context))
    }
    try:
        node = ConfigNode("kubeconfig", kubeconfig, "")  # type: ignore[no-untyped-call]
        loader = KubeConfigLoader(node, active_context="context", config_base_path=None)  # type: ignore[no-untyped-call]
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise ValueError(str(error)) from error
    return configuration


def _read_kubeconfig(file: Path) -> dict[str, Any]:
    """Read and validate a file. As in kubectl, the last of duplicate keys applies.

    Raises:
        CredentialsError: the file exceeds a limit, or is invalid.
        OSError: the file cannot be read.
    """
    try:
        data = read_limited_file(file, MAX_KUBECONFIG_BYTES)
        config, _ = parse_document(data, str(file), MAX_KUBECONFIG_BYTES)
    except InputLimitError as error:
        raise CredentialsError(f"kubeconfig {file}: {error}") from error
    except ConfigError as error:
        message = error.errors[0].message.removeprefix(f"{file}: ")
        raise CredentialsError(f"kubeconfig {file}: {shorten(message)}") from error
    validate_kubeconfig(config, file)
    return cast("dict[str, Any]", config)


def _build_config(
    source: CredentialSource,
    configuration: Any,
    user: Entry,
    credential_settings: dict[str, Any],
    exec_status: dict[str, Any],
) -> RestConfig:
    """Build the config from *configuration* and the settings that this module handles."""
    authorization = configuration.get_api_key_with_prefix("BearerToken")
    headers = [("Authorization", " ".join(authorization.split()))] if authorization else []
    refresh_after = None
    if credential_settings.get("tokenFile"):
        headers = [_make_bearer_header(_read_token_or_default(user, credential_settings["tokenFile"]))]
        refresh_after = TOKEN_FILE_SECONDS
    elif exec_status.get("token") and not authorization:
        headers = [_make_bearer_header(exec_status["token"])]
    expiry = exec_status.get("expirationTimestamp")
    certificate, key = configuration.cert_file or "", configuration.key_file or ""
    if exec_status.get("clientCertificateData") and not certificate:
        certificate, key = (
            write_pem_file(exec_status["clientCertificateData"].encode()),
            write_pem_file(exec_status["clientKeyData"].encode()),
        )
    if not exec_status and (configuration.ssl_ca_cert or certificate):
        # Rotated CAs and client certificates are noticed. client-go reads these files every five minutes.
        refresh_after = TOKEN_FILE_SECONDS
    server = (source.master or str(configuration.host)).rstrip("/")
    impersonation = source.impersonation
    if impersonation == Impersonation():
        settings = user.values
        extra = {key: tuple(values) for key, values in (settings.get("as-user-extra") or {}).items()}
        impersonation = Impersonation(
            settings.get("as", ""), settings.get("as-uid", ""), tuple(settings.get("as-groups") or ()), extra
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
        context=source.context,
    )


def _make_bearer_header(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token.strip()}"


def _read_token_or_default(user: Entry, file_name: str) -> str:
    """Return the token in the file, or the token of the user if the file cannot be read.

    Raises:
        CredentialsError: the file cannot be read, and the user has no token.

    Source: client-go/transport/round_trippers.go, bearerAuthRoundTripper.RoundTrip (1.37).
    """
    try:
        return _read_token(user.folder / file_name)
    except CredentialsError:
        if user.values.get("token"):
            return str(user.values["token"])
        raise


def _read_token(file: Path) -> str:
    try:
        token = read_limited_file(file, MAX_CREDENTIAL_BYTES).decode("ascii").strip()
    except OSError as error:
        raise CredentialsError(f"token file {file}: {error.strerror}") from error
    except InputLimitError as error:
        raise CredentialsError(f"token file {file}: {error}") from error
    except UnicodeDecodeError as error:
        raise CredentialsError(f"token file {file}: byte 0x{error.object[error.start]:02x} is not ASCII") from error
    if not token:
        raise CredentialsError(f"token file {file} is empty")
    if not token.isprintable():
        raise CredentialsError(f"token file {file}: has a line break or a control character; want one token")
    return token
