"""Kubeconfigs without auth providers, interpreted as the package `kubernetes` does, which is the expected value."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration
from kubernetes.config.kube_config import KubeConfigLoader

from extender.client.auth.static_credentials import find_context, make_static_configuration, write_pem_file
from extender.client.kubeconfig import CredentialSource, load_config
from tests.unit.client.kubeconfig_files import AUTHORIZATION, write_kubeconfig

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM.encode()).decode()
SERVER = "https://10.0.0.1:6443"

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a token": ({"server": SERVER}, {"token": "abc"}),
    "a token that wins over a password": ({"server": SERVER}, {"token": "abc", "username": "a", "password": "b"}),
    "a password": ({"server": SERVER + "/"}, {"username": "ann", "password": "pässword"}),
    "no user": ({"server": "http://10.0.0.1:8080/"}, {}),
    "an authority as data": ({"server": SERVER, "certificate-authority-data": DATA}, {"token": "abc"}),
    "an authority as file": ({"server": SERVER, "certificate-authority": "ca.crt"}, {"token": "abc"}),
    "data that wins over a file": (
        {"server": SERVER, "certificate-authority": "ca.crt", "certificate-authority-data": DATA}, {}
    ),
    "empty data": ({"server": SERVER, "certificate-authority-data": ""}, {}),
    "a client certificate as data": (
        {"server": SERVER}, {"client-certificate-data": DATA, "client-key-data": DATA}
    ),
    "a client certificate as files": (
        {"server": SERVER}, {"client-certificate": "sub/../ca.crt", "client-key": "ca.crt"}
    ),
    "no verification": ({"server": SERVER, "insecure-skip-tls-verify": True}, {}),
    "verification": ({"server": SERVER, "insecure-skip-tls-verify": False}, {}),
    "another name in the certificate": ({"server": SERVER, "tls-server-name": "api"}, {}),
    "a proxy": ({"server": SERVER, "proxy-url": "http://proxy:3128"}, {}),
    "certificates of a server without TLS": ({"server": "http://a", "certificate-authority-data": DATA}, {}),
    "no server": ({}, {}),
}  # fmt: skip


def make_kubeconfig(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": dict(cluster)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": dict(user)}],
        "current-context": "x",
    }


def read_text(path: str | None) -> str:
    return Path(path).read_text() if path else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_text(PEM)
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize(("cluster", "user"), CASES.values(), ids=CASES)
def test_the_settings_are_those_of_the_package_kubernetes(
    folder: Path, cluster: dict[str, Any], user: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    want = Configuration()
    KubeConfigLoader(make_kubeconfig(cluster, user), "x", config_base_path=str(folder)).load_and_set(want)
    entries = find_context({str(folder / "config"): make_kubeconfig(cluster, user)}, "x")
    got = make_static_configuration(*entries)
    assert (got.host, got.verify_ssl, got.tls_server_name, got.proxy) == (
        want.host, want.verify_ssl, want.tls_server_name or "", want.proxy or ""
    )  # fmt: skip
    assert got.get_api_key_with_prefix("BearerToken") == (want.get_api_key_with_prefix("BearerToken") or "")
    for name in ("ssl_ca_cert", "cert_file", "key_file"):
        assert read_text(getattr(got, name)) == read_text(getattr(want, name)), name


ERRORS = {
    "an unknown context": ("y", {}, {}, 'no context has the name "y"; the contexts are x$'),
    "a file that does not exist": ("x", {"server": SERVER, "certificate-authority": "no.crt"}, {}, "not exist: .*no"),
    "data that is not base64": (
        "x", {"server": SERVER, "certificate-authority-data": "a"}, {}, "^certificate-authority-data: illegal base64"
    ),
    "data with other characters": (
        "x", {"server": SERVER, "certificate-authority-data": "@@@@"}, {}, "^certificate-authority-data: illegal base64"
    ),
    "a password outside of Latin-1": ("x", {"server": SERVER}, {"username": "a", "password": "€"}, "latin-1"),
}  # fmt: skip


@pytest.mark.parametrize(("context", "cluster", "user", "message"), ERRORS.values(), ids=ERRORS)
def test_an_invalid_kubeconfig_is_an_error(
    folder: Path, context: str, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    configs = {str(folder / "config"): make_kubeconfig(cluster, user)}
    with pytest.raises(ValueError, match=message):
        make_static_configuration(*find_context(configs, context))


def test_only_the_first_of_many_contexts_are_named(folder: Path) -> None:
    contexts = [{"name": f"c{number}", "context": {}} for number in range(11)]
    with pytest.raises(ValueError, match=r"the contexts are c0, .*, c9, \.\.\.$"):
        find_context({str(folder / "config"): {"contexts": contexts}}, "y")


def test_a_context_without_a_known_cluster_is_an_error(folder: Path) -> None:
    config = make_kubeconfig({"server": SERVER}, {})
    for context, message in (({}, "the context x names no cluster"), ({"cluster": "d"}, "no cluster has the name d")):
        config["contexts"] = [{"name": "x", "context": context}]
        with pytest.raises(ValueError, match=message):
            find_context({str(folder / "config"): config}, "x")


def test_the_first_file_with_a_name_applies_and_its_folder_is_that_of_its_paths(folder: Path) -> None:
    first, second = make_kubeconfig({"server": "http://first"}, {}), make_kubeconfig({"server": "http://second"}, {})
    cluster, user = find_context({"/one/config": first, "/two/config": second}, "x")
    assert (cluster.values["server"], cluster.folder, user.folder) == ("http://first", Path("/one"), Path("/one"))


def test_the_same_certificate_has_one_private_file() -> None:
    file = Path(write_pem_file(b"one"))
    assert write_pem_file(b"one") == str(file)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"one", 0o600)


def test_a_file_that_was_removed_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems remove files from /tmp that nobody changed for ten days."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    Path(write_pem_file(b"two")).unlink()
    assert Path(write_pem_file(b"two")).read_bytes() == b"two"


def test_the_64_files_that_were_used_last_stay() -> None:
    """An exec plugin may return a new key each hour."""
    first = Path(write_pem_file(b"first"))
    second = Path(write_pem_file(b"second"))
    for number in range(62):
        write_pem_file(b"key %d" % number)
    write_pem_file(b"first")
    write_pem_file(b"newest")
    assert (first.exists(), second.exists()) == (True, False)


def test_no_file_stays_when_the_process_ends() -> None:
    code = """
import os
vars(os).pop("memfd_create", None)
from extender.client.auth.static_credentials import write_pem_file
print(write_pem_file(b"key"))
"""
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not Path(process.stdout.strip()).exists()


@pytest.mark.parametrize(
    ("server", "user", "headers"),
    [
        pytest.param("http://one:8080", {"token": "abc"}, (), id="a token"),
        pytest.param("http://one:8080", {"username": "ann", "password": "pw"}, (), id="a password"),
        pytest.param("http://one:8080", {"exec": {"command": "./missing"}}, (), id="a plugin, which is not run"),
        pytest.param(
            "http://one:8080", {"token": "abc", "as": "bob"}, (("Impersonate-User", "bob"),), id="impersonation stays"
        ),
        pytest.param("http://[::1]:8080", {"token": "abc"}, ((AUTHORIZATION, "Bearer abc"),), id="the same machine"),
    ],
)
def test_credentials_are_not_sent_without_tls_to_another_machine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, server: str, user: dict[str, Any], headers: tuple[Any, ...]
) -> None:
    file = write_kubeconfig(tmp_path / "config", cluster={"server": server}, user=user)
    assert load_config(CredentialSource(file)).headers == headers
    text = "No credentials are sent, because the address of the API server has no TLS: use https://"
    assert caplog.messages == ([] if "::1" in server else [text])
