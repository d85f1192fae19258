"""A pod reads the address of the API server from its environment, and the files of its service account."""

from pathlib import Path

import pytest

from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource, load_config
from tests.unit.client.kubeconfig_files import AUTHORIZATION


@pytest.mark.parametrize(
    ("host", "server"), [("fd00::1", "https://[fd00::1]:443"), ("10.0.0.1", "https://10.0.0.1:443")]
)
def test_a_pod_finds_its_service_account(tmp_path: Path, host: str, server: str) -> None:
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_text("authority")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    identity = load_config(CredentialSource(environ=environ, service_account_dir=tmp_path))
    assert identity.server == server
    assert identity.headers == ((AUTHORIZATION, "Bearer pod-token"),)
    assert (identity.ca_file, identity.refresh_after) == (str(tmp_path / "ca.crt"), 60.0)


@pytest.mark.parametrize(
    ("port", "files", "message"),
    [
        ("", ("token", "ca.crt"), "KUBERNETES_SERVICE_PORT is not set$"),
        ("443", ("token",), "ca.crt does not exist$"),
        ("443", ("ca.crt",), "token does not exist$"),
    ],
)
def test_an_incomplete_service_account_is_reported(
    tmp_path: Path, port: str, files: tuple[str, ...], message: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("x")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    with pytest.raises(CredentialsError, match=f"^the pod's service account: .*{message}"):
        load_config(CredentialSource(environ=environ, service_account_dir=tmp_path))
