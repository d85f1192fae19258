"""Where the server is and who we are: kubeconfigs, plugins, tokens and certificates that change, pods, proxies."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from extender.client import proxies
from extender.client.credentials import Credentials
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import Impersonation, Place, read
from tests.unit.client.virtual_time import here, run

AUTHORIZATION = "Authorization"


def a_kubeconfig(
    file: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> str:
    """A kubeconfig with one context `here`, and what *more* says instead."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me"}}],
        "clusters": [{"name": "there", "cluster": {"server": "http://one:8080/", **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        **more,
    }
    file.write_text(yaml.safe_dump(content))
    return str(file)


def header(place: Place, name: str = AUTHORIZATION) -> list[str]:
    return [value for key, value in read(place).headers if key == name]


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({}, []),
        ({"token": "abc"}, ["Bearer abc"]),
        ({"tokenFile": "secret"}, ["Bearer from-file"]),
        ({"token": "abc", "tokenFile": "secret"}, ["Bearer abc"]),
        ({"username": "ann", "password": "pw"}, ["Basic " + base64.b64encode(b"ann:pw").decode()]),
    ],
    ids=["nothing", "a token", "a token file beside the kubeconfig", "a token wins over its file", "a password"],
)
def test_a_user_says_how_to_identify(tmp_path: Path, user: dict[str, Any], sent: list[str]) -> None:
    (tmp_path / "secret").write_text("from-file\n")
    assert header(Place(a_kubeconfig(tmp_path / "config", user=user))) == sent


def test_impersonation_is_read_from_the_user_and_overruled_by_the_command_line(tmp_path: Path) -> None:
    user = {"token": "x", "as": "ann", "as-uid": "7", "as-groups": ["a"], "as-user-extra": {"scopes": ["view"]}}
    file = a_kubeconfig(tmp_path / "config", user=user)
    assert read(Place(file)).headers == (
        (AUTHORIZATION, "Bearer x"),
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Extra-scopes", "view"),
    )
    assert header(Place(file, impersonation=Impersonation("bob")), "Impersonate-User") == ["bob"]


def test_the_context_asked_for_is_taken(tmp_path: Path) -> None:
    contexts = [
        {"name": "here", "context": {"cluster": "there", "user": "me"}},
        {"name": "far", "context": {"cluster": "away", "user": "me"}},
    ]
    clusters = [{"name": name, "cluster": {"server": f"http://{name}"}} for name in ("there", "away")]
    file = a_kubeconfig(tmp_path / "config", contexts=contexts, clusters=clusters)
    assert read(Place(file)).server == "http://there"
    assert read(Place(file, context="far")).server == "http://away"
    with pytest.raises(CredentialsError, match="name nowhere"):
        read(Place(file, context="nowhere"))


def test_of_several_files_the_first_to_say_something_wins(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "secret").write_text("of-b")
    first = a_kubeconfig(tmp_path / "first", clusters=[], users=None)
    second = a_kubeconfig(tmp_path / "b" / "second", user={"tokenFile": "secret"}, **{"current-context": "other"})
    environ = {"KUBECONFIG": f"{first}:{tmp_path}/missing:{second}", "HOME": str(tmp_path)}
    identity = read(Place(environ=environ))
    assert identity.server == "http://one:8080"
    assert identity.headers == ((AUTHORIZATION, "Bearer of-b"),)


def test_the_file_in_the_home_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    a_kubeconfig(tmp_path / ".kube" / "config")
    assert read(Place(environ={"HOME": str(tmp_path)})).server == "http://one:8080"


def test_master_wins_over_the_kubeconfig_and_does_without_one(tmp_path: Path) -> None:
    file = a_kubeconfig(tmp_path / "config", user={"token": "x"})
    identity = read(Place(file, master="http://two:1/"))
    assert (identity.server, identity.headers) == ("http://two:1", ((AUTHORIZATION, "Bearer x"),))
    assert read(Place(master="http://two:1")).server == "http://two:1"


def test_a_pod_finds_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "ca.crt").write_text("authority")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    identity = read(Place(environ=environ, service_account=tmp_path))
    assert identity.server == "https://[fd00::1]:443"
    assert identity.headers == ((AUTHORIZATION, "Bearer pod-token"),)
    assert (identity.ca, identity.good_for) == (str(tmp_path / "ca.crt"), 60.0)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (Place(), "no kubeconfig: none given with --kubeconfig"),
        (Place("missing"), "kubeconfig missing does not exist"),
        (
            Place(
                environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"},
                service_account=Path("missing"),
            ),
            "the pod's service account: Service token file does not exist",
        ),
    ],
    ids=["nothing anywhere", "no such file", "a pod without a token"],
)
def test_what_is_missing_is_said_in_one_line(place: Place, message: str) -> None:
    with pytest.raises(CredentialsError, match=message) as caught:
        read(place)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty$"),
        ("a: [", "while parsing"),
        ("just text", "want a mapping with clusters, contexts and users$"),
        ("[1]", "want a mapping with clusters, contexts and users$"),
        ("clusters: 3", "clusters: want a list$"),
        ("contexts: [1]", r"contexts\[0\]: want a mapping with a name$"),
        ("users: [{name: u, user: 3}]", r"users\[0\].user: want a mapping$"),
        ("{contexts: [], clusters: [], users: []}", "no current-context; set one$"),
        ("{current-context: x, contexts: [], clusters: [], users: []}", "name x"),
        ("{current-context: x, contexts: [{name: x, context: {cluster: y}}]}", "name y"),
        (
            "{current-context: x, contexts: [{name: x, context: {cluster: y}}], "
            "clusters: [{name: y, cluster: {server: 'https://z', certificate-authority: missing.crt}}]}",
            "missing.crt",
        ),
    ],
    ids=[
        "empty",
        "no YAML",
        "no mapping",
        "a list",
        "a number for a list",
        "an entry that is a number",
        "a user that is a number",
        "no context",
        "an unknown context",
        "an unknown cluster",
        "no such authority",
    ],
)
def test_a_bad_kubeconfig_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=message) as caught:
        read(Place(str(file)))
    assert str(file) in caught.value.message


def a_plugin(folder: Path, status: str, *, code: int = 0, version: str = "v1") -> dict[str, Any]:
    """An exec plugin that answers with *status* and counts its runs in the file `runs`."""
    script = folder / "plugin.sh"
    answer = f'{{"apiVersion":"client.authentication.k8s.io/{version}","kind":"ExecCredential","status":{status}}}'
    script.write_text(f"#!/bin/sh\necho \"$WHO\" >> '{folder}/runs'\necho broken >&2\necho '{answer}'\nexit {code}\n")
    script.chmod(0o755)
    env = [{"name": "WHO", "value": "me"}]
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh", "env": env}


def test_an_exec_plugin_gives_a_token_and_says_how_long_it_lasts(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, '{"token":"fresh","expirationTimestamp":"2030-01-01T00:00:00Z"}')
    identity = read(Place(a_kubeconfig(tmp_path / "config", user={"exec": plugin})))
    assert identity.headers == ((AUTHORIZATION, "Bearer fresh"),)
    assert identity.good_until == 1_893_456_000.0
    assert (tmp_path / "runs").read_text() == "me\n"


def test_an_exec_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    status = '{"clientCertificateData":"CERT","clientKeyData":"KEY"}'
    file = a_kubeconfig(tmp_path / "config", cluster={"server": "https://x"}, user={"exec": a_plugin(tmp_path, status)})
    identity = read(Place(file))
    assert (Path(identity.certificate).read_text(), Path(identity.key).read_text()) == ("CERT", "KEY")
    assert Path(identity.key).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("status", "code", "version", "message"),
    [
        ("{}", 3, "v1", "returned 3. broken"),
        ("{}", 0, "v1", "gave neither a token nor a certificate"),
        ('{"token":"x"}', 0, "v1beta1", "does not match"),
    ],
    ids=["it fails", "it gives nothing", "it speaks another version"],
)
def test_a_failing_exec_plugin_is_named(tmp_path: Path, status: str, code: int, version: str, message: str) -> None:
    plugin = a_plugin(tmp_path, status, code=code, version=version)
    with pytest.raises(CredentialsError, match=message) as caught:
        read(Place(a_kubeconfig(tmp_path / "config", user={"exec": plugin})))
    assert "exec plugin ./plugin.sh" in caught.value.message


def test_a_missing_exec_plugin_says_how_to_get_it(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "no-such-plugin",
        "installHint": "get it there",
    }
    with pytest.raises(CredentialsError, match="no-such-plugin is not installed: get it there"):
        read(Place(a_kubeconfig(tmp_path / "config", user={"exec": plugin})))


def test_a_token_file_is_read_again_every_minute_and_an_unreadable_one_keeps_the_old_token(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def main() -> list[str]:
        token.write_text("one")
        credentials = Credentials(Place(a_kubeconfig(tmp_path / "config", user={"tokenFile": "token"})), here())
        seen = []
        for text, wait in (("one", 59), ("two", 59), ("two", 2), ("", 61), ("three", 11)):
            token.write_text(text)
            await asyncio.sleep(wait)
            seen.append((await credentials.current()).identity.headers[0][1])
        return seen

    assert run(main()) == [f"Bearer {token}" for token in ("one", "one", "two", "two", "three")]


def test_a_plugin_runs_again_shortly_before_its_token_ends(tmp_path: Path) -> None:
    async def main() -> list[int]:
        ends = here().now() + 100
        text = f'{{"token":"x","expirationTimestamp":"{_rfc3339(ends)}"}}'
        file = a_kubeconfig(tmp_path / "config", user={"exec": a_plugin(tmp_path, text)})
        credentials = Credentials(Place(file), here())
        runs = []
        for wait in (0, 80, 15):
            await asyncio.sleep(wait)
            await credentials.current()
            runs.append((tmp_path / "runs").read_text().count("me"))
        return runs

    assert run(main()) == [1, 1, 2]


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_tls_settings_stay_the_same_object_until_a_certificate_changes(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    cluster = {"server": "https://x", "certificate-authority": "ca.crt", "tls-server-name": "other"}
    user = {"client-certificate": "me.crt", "client-key": "me.key"}

    def issue() -> None:
        mine = authority.issue_cert("me@example.org")
        mine.cert_chain_pems[0].write_to_path(tmp_path / "me.crt")
        mine.private_key_pem.write_to_path(tmp_path / "me.key")

    async def main() -> None:
        issue()
        file = a_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
        credentials = Credentials(Place(file), here())
        first = await credentials.current()
        assert first.tls is not None
        assert first.tls.verify_mode is ssl.CERT_REQUIRED
        assert first.tls.check_hostname
        assert first.identity.server_name == "other"
        same = await credentials.refused(first)
        assert same.tls is first.tls
        issue()
        other = await credentials.refused(same)
        assert other.tls is not first.tls

    run(main())


def test_a_server_s_certificate_is_not_checked_only_if_asked(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = {"server": "https://x", "insecure-skip-tls-verify": True}
        credentials = Credentials(Place(a_kubeconfig(tmp_path / "config", cluster=cluster)), here())
        access = await credentials.current()
        assert access.tls is not None
        assert access.tls.verify_mode is ssl.CERT_NONE

    run(main())


def test_a_proxy_is_taken_from_the_cluster_or_else_from_the_environment(tmp_path: Path) -> None:
    environ = {"HTTP_PROXY": "http://env:3128", "NO_PROXY": "two"}
    file = a_kubeconfig(tmp_path / "config", cluster={"proxy-url": "http://own:3128"})
    assert read(Place(file, environ=environ)).proxy == "http://own:3128"
    assert read(Place(a_kubeconfig(tmp_path / "config"), environ=environ)).proxy == "http://env:3128"
    assert read(Place(master="http://two", environ=environ)).proxy == ""


@pytest.mark.parametrize(
    ("server", "none_for", "direct"),
    [
        ("https://api.example.org:6443", "", False),
        ("https://api.example.org:6443", "*", True),
        ("https://api.example.org:6443", "example.org", True),
        ("https://api.example.org:6443", ".example.org", True),
        ("https://example.org", ".example.org", False),
        ("https://api.example.org:6443", "ple.org", False),
        ("https://api.example.org:6443", "other, API.example.org:6443", True),
        ("https://api.example.org:6443", "api.example.org:443", False),
        ("https://10.96.0.1", "10.96.0.0/12", True),
        ("https://10.96.0.1", "10.0.0.0/16", False),
        ("https://10.96.0.1", "10.96.0.1", True),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
    ids=[
        "no exception",
        "all",
        "a domain",
        "a domain with a dot",
        "a dot wants a subdomain",
        "half a word",
        "with its port",
        "with another port",
        "a network",
        "another network",
        "an address",
        "a network of version 6",
        "this machine",
        "localhost",
    ],
)
def test_no_proxy_is_read_as_go_reads_it(server: str, none_for: str, direct: bool) -> None:
    environ = {"https_proxy": "proxy:3128", "no_proxy": none_for}
    assert proxies.proxy_for(server, environ) == ("" if direct else "http://proxy:3128")
