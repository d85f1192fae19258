"""Interpret a kubeconfig without auth providers: addresses, certificates, tokens and passwords.

Certificates and keys that it contains become private files.

The package `kubernetes`, which interprets the others, takes a fifth of a second of CPU time to import. A command that
answers one question about a live cluster would spend much of its own time there.
"""

import atexit
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from extender.basics.private_keys import open_private_file
from extender.client.errors import CredentialsError
from extender.client.proxies import is_loopback

_LOG: Final = logging.getLogger("extender.client")

_MAX_SHOWN_NAMES: Final = 10
_MAX_PEM_FILES: Final = 64
_PEM_FILES: Final[dict[bytes, tuple[str, ExitStack]]] = {}


def write_pem_file(pem: bytes) -> str:
    """Return the path of a private file with *pem*. The ssl module reads certificates only from files.

    The 64 files that were used last stay until the process ends, because an exec plugin returns a new key each time.
    A file that a cleaner of old files removed is written again.

    Raises:
        OSError: the file cannot be written.
    """
    path, file = _PEM_FILES.pop(pem, ("", ExitStack()))
    if not path or not Path(path).exists():
        file.close()
        path = file.enter_context(open_private_file(pem))
    _PEM_FILES[pem] = path, file
    if len(_PEM_FILES) > _MAX_PEM_FILES:
        _remove_pem_file(next(iter(_PEM_FILES)))
    return path


def _remove_pem_file(pem: bytes) -> None:
    _, file = _PEM_FILES.pop(pem)
    file.close()


@atexit.register
def _remove_pem_files() -> None:
    for pem in list(_PEM_FILES):
        _remove_pem_file(pem)


_TEXT_FIELDS: Final = (
    *("server", "proxy-url", "tls-server-name", "certificate-authority", "certificate-authority-data"),
    *("client-certificate", "client-certificate-data", "client-key", "client-key-data"),
    *("token", "tokenFile", "username", "password", "cluster", "user", "namespace", "as", "as-uid"),
)
"""Fields of clusters, contexts and users whose value is text."""


_IMPERSONATION_FIELDS: Final = frozenset(("as", "as-uid", "as-groups", "as-user-extra"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A cluster or user of a kubeconfig.

    Attributes:
        values: the fields. A change changes the kubeconfig that was read.
        folder: the folder of the kubeconfig, to which paths in *values* are relative.
    """

    values: dict[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class StaticConfiguration:
    """The settings of a cluster and its user, with the names that the class Configuration of `kubernetes` has."""

    host: str = ""
    ssl_ca_cert: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify_ssl: bool = True
    tls_server_name: str = ""
    proxy: str = ""
    authorization: str = ""

    def get_api_key_with_prefix(self, _name: str) -> str:
        """Return the value of the header Authorization; empty without a token or a password."""
        return self.authorization


def validate_kubeconfig(config: Any, file: Path) -> None:
    """Check that a kubeconfig has lists of named mappings. The `kubernetes` package does not check this.

    Raises:
        CredentialsError: the file is empty, or has another structure.
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
            fields = entry.get(kind) or {}
            if not isinstance(fields, dict):
                raise CredentialsError(f"kubeconfig {file}: {kind}s[{index}].{kind}: want a mapping")
            for name in _TEXT_FIELDS:
                if not isinstance(fields.get(name) or "", str):
                    raise CredentialsError(f"kubeconfig {file}: {kind}s[{index}].{kind}.{name}: want text")


def find_context(configs: Mapping[str, dict[str, Any]], name: str) -> tuple[Entry, Entry]:
    """Return the cluster and the user of a context. Of entries with the same name, that of the first file applies.

    *configs* are the validated kubeconfigs by path, in kubectl's order.

    Raises:
        ValueError: there is no such context, or no such cluster. A missing user has no fields.
    """
    context = _find(configs, "context", name)
    if context is None:
        names = [entry["name"] for config in configs.values() for entry in config.get("contexts") or ()]
        shown_names = [*names[:_MAX_SHOWN_NAMES], *(["..."] if len(names) > _MAX_SHOWN_NAMES else [])]
        hint = f"; the contexts are {', '.join(shown_names)}" if names else ""
        raise ValueError(f'no context has the name "{name}"{hint}')
    cluster_name, user_name = (str(context.values.get(kind) or "") for kind in ("cluster", "user"))
    if not cluster_name:
        raise ValueError(f"the context {name} names no cluster")
    cluster = _find(configs, "cluster", cluster_name)
    if cluster is None:
        raise ValueError(f"no cluster has the name {cluster_name}; the context {name} names it")
    return cluster, _find(configs, "user", user_name) or Entry({}, Path())


def drop_cleartext_credentials(user: Entry, server: str) -> Entry:
    """Return *user* with no fields but impersonation if the URL *server* has no TLS: anyone could read the rest.

    kubectl does the same. A server at a loopback address gets the credentials, which do not leave the machine then.

    Source: client-go/tools/clientcmd/client_config.go, DirectClientConfig.ClientConfig (1.37).
    """
    url = urlsplit(server)
    if url.scheme != "http" or is_loopback(url.hostname or ""):
        return user
    remaining = {name: value for name, value in user.values.items() if name in _IMPERSONATION_FIELDS}
    if len(remaining) < len(user.values):
        _LOG.warning("No credentials are sent, because the address of the API server has no TLS: use https://")
    return replace(user, values=remaining)


def _find(configs: Mapping[str, dict[str, Any]], kind: str, name: str) -> Entry | None:
    for path, config in configs.items():
        for entry in config.get(f"{kind}s") or []:
            if entry["name"] == name:
                entry[kind] = entry.get(kind) or {}
                return Entry(entry[kind], Path(path).absolute().parent)
    return None


def make_static_configuration(cluster: Entry, user: Entry) -> StaticConfiguration:
    """Return the settings of a cluster and its user. Tokens in files and exec plugins are left to the caller.

    The *user* has no auth provider.

    Raises:
        ValueError: a file does not exist, a certificate or key is not base64, or a password has a character that a
            header cannot have.
    """
    settings = cluster.values
    host = str(settings.get("server") or "").rstrip("/")
    files = ("", "", "")
    if host.startswith("https"):
        files = (
            _get_file(cluster, "certificate-authority"),
            _get_file(user, "client-certificate"),
            _get_file(user, "client-key"),
        )
    return StaticConfiguration(
        host,
        *files,
        verify_ssl=not settings.get("insecure-skip-tls-verify"),
        tls_server_name=settings.get("tls-server-name") or "",
        proxy=settings.get("proxy-url") or "",
        authorization=_make_authorization(user.values),
    )


def _get_file(entry: Entry, name: str) -> str:
    """Return the path of a file with the field *name*-data, or else the path in *name*; empty without both."""
    if f"{name}-data" in entry.values:
        data = entry.values[f"{name}-data"]
        try:
            return write_pem_file(b64decode("".join(data.split()), validate=True)) if data else ""
        except ValueError as error:
            raise ValueError(f"{name}-data: illegal base64 data: {error}") from error
    if not entry.values.get(name):
        return ""
    path = str(os.path.normpath(entry.folder / entry.values[name]))
    if not Path(path).is_file():
        raise ValueError(f"File does not exist: {path}")
    return path


def _make_authorization(user: Mapping[str, Any]) -> str:
    if user.get("token"):
        return f"Bearer {user['token']}"
    if "username" in user and "password" in user:
        password = f"{user['username']}:{user['password']}".encode("latin-1")
        return f"Basic {b64encode(password).decode()}"
    return ""
