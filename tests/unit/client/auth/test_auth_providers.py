"""Users with an auth provider, whose tokens the package `kubernetes` reads."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource, load_config
from tests.unit.client.kubeconfig_files import AUTHORIZATION, write_kubeconfig


def make_token(expiry: int) -> str:
    """Return a JWT without a valid signature, which expires at *expiry* in seconds since 1970."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expiry, "pad": "xx"}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def make_user(token: str) -> dict[str, Any]:
    return {"auth-provider": {"name": "oidc", "config": {"id-token": token, "idp-issuer-url": "https://issuer"}}}


def test_the_token_of_an_auth_provider_is_sent(tmp_path: Path) -> None:
    """The user is in another file than the cluster, and the path of the CA is relative to the cluster's file."""
    for name in ("clusters", "users"):
        (tmp_path / name).mkdir()
    (tmp_path / "clusters" / "ca.crt").write_text("authority")
    token = make_token(4102444800)
    cluster = {"server": "https://one:6443/", "certificate-authority": "ca.crt"}
    clusters = write_kubeconfig(tmp_path / "clusters" / "config", cluster=cluster, users=[])
    users = write_kubeconfig(tmp_path / "users" / "config", user=make_user(token), clusters=[], contexts=[])

    config = load_config(CredentialSource(environ={"KUBECONFIG": f"{clusters}:{users}"}))

    assert (config.server, config.headers) == ("https://one:6443", ((AUTHORIZATION, f"Bearer {token}"),))
    assert config.ca_file == str(tmp_path / "clusters" / "ca.crt")


def test_a_provider_without_an_expected_setting_is_an_error(tmp_path: Path) -> None:
    user: dict[str, Any] = {"auth-provider": {"name": "oidc", "config": {}}}
    file = write_kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(CredentialsError, match=f"^kubeconfig {file}: .*id-token"):
        load_config(CredentialSource(file))
