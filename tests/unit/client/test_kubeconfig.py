"""Kubeconfig files, exec plugins, service accounts and impersonation."""

import base64
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from extender.basics import input_limits
from extender.client.credentials import Credentials
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource, Impersonation, load_config
from tests.unit.client.kubeconfig_files import AUTHORIZATION, write_exec_plugin, write_kubeconfig
from tests.unit.client.virtual_time import current_loop, run


def sent_header(source: CredentialSource, name: str = AUTHORIZATION) -> list[str]:
    return [value for key, value in load_config(source).headers if key == name]


_MISSING = {"command": "./missing"}
_PASSWORD = "Basic " + base64.b64encode(b"ann:pw").decode()


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"token": "abc"}, ["Bearer abc"], id="a token"),
        pytest.param({"tokenFile": "secret"}, ["Bearer from-file"], id="a token file beside the kubeconfig"),
        # Written out from the headers that kubectl 1.32 sends.
        pytest.param({"token": "abc", "tokenFile": "secret"}, ["Bearer from-file"], id="the file wins over the token"),
        pytest.param({"token": "abc", "tokenFile": "missing"}, ["Bearer abc"], id="a token and a missing file"),
        pytest.param({"token": "abc", "exec": _MISSING}, ["Bearer abc"], id="the token wins over a plugin"),
        pytest.param({"tokenFile": "secret", "exec": _MISSING}, ["Bearer from-file"], id="the file wins over a plugin"),
        pytest.param({"username": "ann", "password": "pw"}, [_PASSWORD], id="a password"),
    ],
)
def test_a_user_s_credentials_become_headers(tmp_path: Path, user: dict[str, Any], sent: list[str]) -> None:
    (tmp_path / "secret").write_text("from-file\n")
    assert sent_header(CredentialSource(write_kubeconfig(tmp_path / "config", user=user))) == sent


def test_impersonation_comes_from_the_user_unless_the_command_line_sets_it(tmp_path: Path) -> None:
    user = {"token": "x", "as": "ann", "as-uid": "7", "as-groups": ["a"], "as-user-extra": {"scopes": ["view"]}}
    file = write_kubeconfig(tmp_path / "config", user=user)
    assert load_config(CredentialSource(file)).headers == (
        (AUTHORIZATION, "Bearer x"),
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Extra-scopes", "view"),
    )
    assert sent_header(CredentialSource(file, impersonation=Impersonation("bob")), "Impersonate-User") == ["bob"]


def test_the_chosen_context_is_used(tmp_path: Path) -> None:
    contexts = [
        {"name": "here", "context": {"cluster": "there", "user": "me"}},
        {"name": "far", "context": {"cluster": "away", "user": "me"}},
    ]
    clusters = [{"name": name, "cluster": {"server": f"http://{name}"}} for name in ("there", "away")]
    file = write_kubeconfig(tmp_path / "config", contexts=contexts, clusters=clusters)
    assert load_config(CredentialSource(file)).server == "http://there"
    assert load_config(CredentialSource(file, context="far")).server == "http://away"
    with pytest.raises(CredentialsError, match=r'no context has the name "nowhere"; the contexts are here, far$'):
        load_config(CredentialSource(file, context="nowhere"))


def test_of_several_files_the_first_current_context_wins(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "secret").write_text("of-b")
    first = write_kubeconfig(tmp_path / "first", clusters=[], users=None)
    elsewhere: dict[str, Any] = {"current-context": "other"}
    second = write_kubeconfig(tmp_path / "b" / "second", user={"tokenFile": "secret"}, **elsewhere)
    environ = {"KUBECONFIG": f"{first}:{tmp_path}/missing:{second}", "HOME": str(tmp_path)}
    identity = load_config(CredentialSource(environ=environ))
    assert identity.server == "https://one:8080"
    assert identity.headers == ((AUTHORIZATION, "Bearer of-b"),)


def test_the_file_in_the_home_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config")
    assert load_config(CredentialSource(environ={"HOME": str(tmp_path)})).server == "https://one:8080"


def test_master_wins_over_the_kubeconfig_and_does_without_one(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path / "config", user={"token": "x"})
    identity = load_config(CredentialSource(file, master="https://two:1/"))
    assert (identity.server, identity.headers) == ("https://two:1", ((AUTHORIZATION, "Bearer x"),))
    assert load_config(CredentialSource(master="https://two:1")).server == "https://two:1"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (CredentialSource(), "no kubeconfig: none given with --kubeconfig"),
        (CredentialSource("missing"), "kubeconfig missing does not exist"),
        (
            CredentialSource(
                environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"},
                service_account_dir=Path("missing"),
            ),
            "the pod's service account: missing/token does not exist$",
        ),
    ],
    ids=["nothing anywhere", "no such file", "a pod without a token"],
)
def test_missing_credentials_are_reported_in_one_line(source: CredentialSource, message: str) -> None:
    with pytest.raises(CredentialsError, match=message) as caught:
        load_config(source)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty$"),
        ("a: [", "line 1, column 5: expected the node content"),
        ("just text", "want a mapping with clusters, contexts and users$"),
        ("[1]", "want a mapping with clusters, contexts and users$"),
        ("clusters: 3", "clusters: want a list$"),
        ("contexts: [1]", r"contexts\[0\]: want a mapping with a name$"),
        ("users: [{name: u, user: 3}]", r"users\[0\].user: want a mapping$"),
        ("clusters: [{name: c, cluster: {proxy-url: 1}}]", r"clusters\[0\].cluster.proxy-url: want text$"),
        ("users: [{name: u, user: {client-key: 1}}]", r"users\[0\].user.client-key: want text$"),
        ("{contexts: [], clusters: [], users: []}", "no current-context; set one$"),
        ("{current-context: x, contexts: [], clusters: [], users: []}", 'no context has the name "x"$'),
        ("{current-context: x, contexts: [{name: x, context: {cluster: gone}}]}", "name gone"),
        (
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}], "
            "clusters: [{name: c, cluster: {server: 'https://z', certificate-authority: missing.crt}}]}",
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
        "a proxy that is a number",
        "a key that is a number",
        "no context",
        "an unknown context",
        "an unknown cluster",
        "no such authority",
    ],
)
def test_an_invalid_kubeconfig_is_reported_with_its_path_and_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=message) as caught:
        load_config(CredentialSource(str(file)))
    assert str(file) in caught.value.message


BILLION = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{','.join([f'*a{level - 1}'] * 10)}]}}\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b" " * (16 * 1024**2 + 1), "has more than 16 MiB"),
        (b"users: " + b"[" * 100_000, "line 1, column 107: nested too deeply; want at most 100 levels"),
        (b'{"users":' * 101 + b"1" + b"}" * 101, "nested too deeply; want at most 100 levels"),
        (BILLION.encode(), "line 4, column 10: document contains excessive aliasing"),
        (MERGES.encode(), "line 4, column 23: document contains excessive aliasing"),
        (
            b"users: [" + b"x," * 200_000 + b"]",
            "line 1, column 400003: more than 200000 values; want a smaller document",
        ),
        (b"users: \xff", "line 1: not UTF-8"),
        (b"users: [{name: a}]\n---\na: b\n", "line 2, column 1: a second document; want one document per file"),
    ],
    ids=[
        "17 MB",
        "100,000 levels",
        "101 levels in JSON",
        "aliases",
        "merges",
        "200,000 values",
        "not UTF-8",
        "two documents",
    ],
)
def test_a_kubeconfig_beyond_a_limit_is_one_line(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text)
    with pytest.raises(CredentialsError) as caught:
        load_config(CredentialSource(str(file)))
    assert caught.value.message == f"kubeconfig {file}: {message}"


def test_a_kubeconfig_of_a_terabyte_is_read_only_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "config"
    with file.open("wb") as stream:
        stream.truncate(1024**4)
    with pytest.raises(CredentialsError) as caught:
        load_config(CredentialSource(str(file)))
    assert caught.value.message == f"kubeconfig {file}: has more than 16 MiB"


def test_a_kubeconfig_of_1000_clusters_is_read(tmp_path: Path) -> None:
    clusters = [{"name": f"c{index}", "cluster": {"server": "http://x", "data": "A" * 4000}} for index in range(1000)]
    clusters.append({"name": "there", "cluster": {"server": "https://one:8080"}})
    file = write_kubeconfig(tmp_path / "config", clusters=clusters)
    assert Path(file).stat().st_size > 4_000_000
    assert load_config(CredentialSource(file)).server == "https://one:8080"


def test_the_first_of_equal_names_and_the_last_of_duplicate_keys_apply(tmp_path: Path) -> None:
    first = write_kubeconfig(tmp_path / "first")
    second = write_kubeconfig(tmp_path / "second", cluster={"server": "http://two:8080"})
    environ = {"KUBECONFIG": f"{first}:{second}"}
    assert load_config(CredentialSource(environ=environ)).server == "https://one:8080"
    Path(first).write_text(Path(first).read_text() + "\ncurrent-context: x\ncurrent-context: here\n")
    assert load_config(CredentialSource(first)).server == "https://one:8080"


@pytest.mark.parametrize("kubeconfig", ["/dev/zero", "/dev/fd/0", "pipe", "~no-such-user/config"])
def test_a_kubeconfig_that_is_no_regular_file_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kubeconfig: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(CredentialsError, match="does not exist or is not a regular file"):
        load_config(CredentialSource(kubeconfig))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x" * (1024**2 + 1), "has more than 1 MiB"),
        (b"one\ntwo\n", "has a line break or a control character; want one token"),
        (b"to\0ken", "has a line break or a control character; want one token"),
        (b"tok\xc3\xa9n", "byte 0xc3 is not ASCII"),
    ],
    ids=["more than 1 MiB", "two lines", "a null character", "not ASCII"],
)
def test_an_invalid_token_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "token").write_bytes(content)
    file = write_kubeconfig(tmp_path / "config", user={"tokenFile": "token"})
    with pytest.raises(CredentialsError) as caught:
        load_config(CredentialSource(file))
    assert caught.value.message == f"token file {tmp_path}/token: {message}"


@pytest.mark.parametrize(
    ("user", "header"),
    [({"token": "a\0b"}, "Authorization"), ({"token": "a", "as": "ann\r\nX-Extra: 1"}, "Impersonate-User")],
    ids=["a token", "an impersonated user"],
)
def test_a_header_with_a_control_character_is_one_line(tmp_path: Path, user: dict[str, str], header: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        load_config(CredentialSource(write_kubeconfig(tmp_path / "config", user=user)))
    assert caught.value.message == f"the value of the header '{header}' has a line break or a control character"


def test_a_token_file_that_is_a_device_or_an_idle_pipe_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_limits, "PIPE_WRITER_TIMEOUT_SECONDS", 0)
    os.mkfifo(tmp_path / "pipe")
    for token_file, message in (("/dev/zero", "is a device"), ("pipe", "is a pipe without a writer")):
        file = write_kubeconfig(tmp_path / "config", user={"tokenFile": token_file})
        with pytest.raises(CredentialsError, match=f"{token_file}: {message}"):
            load_config(CredentialSource(file))


@pytest.mark.parametrize(
    "user", [{"as": "a", "as-user-extra": [1]}, {"as": "a", "as-user-extra": {"a": 1}}], ids=["a list", "a number"]
)
def test_invalid_impersonation_is_one_line(tmp_path: Path, user: dict[str, Any]) -> None:
    file = write_kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(CredentialsError, match=f"kubeconfig {file}: "):
        load_config(CredentialSource(file))


def test_an_exec_plugin_returns_a_token_with_its_expiry(tmp_path: Path) -> None:
    plugin = write_exec_plugin(tmp_path, '{"token":"fresh","expirationTimestamp":"2030-01-01T00:00:00Z"}')
    identity = load_config(CredentialSource(write_kubeconfig(tmp_path / "config", user={"exec": plugin})))
    assert identity.headers == ((AUTHORIZATION, "Bearer fresh"),)
    assert identity.expires_at == 1_893_456_000.0
    assert (tmp_path / "runs").read_text() == "me\n"


def test_an_exec_plugin_may_return_a_certificate(tmp_path: Path) -> None:
    status = '{"clientCertificateData":"CERT","clientKeyData":"KEY"}'
    file = write_kubeconfig(
        tmp_path / "config", cluster={"server": "https://x"}, user={"exec": write_exec_plugin(tmp_path, status)}
    )
    identity = load_config(CredentialSource(file))
    assert (Path(identity.cert_file).read_text(), Path(identity.key_file).read_text()) == ("CERT", "KEY")
    assert Path(identity.key_file).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("status", "code", "version", "message"),
    [
        ("{}", 3, "v1", "returned 3. broken"),
        ("{}", 0, "v1", "returned neither a token nor a certificate"),
        ('{"token":"x"}', 0, "v1beta1", "does not match"),
    ],
    ids=["it fails", "it gives nothing", "it speaks another version"],
)
def test_a_failing_exec_plugin_is_named(tmp_path: Path, status: str, code: int, version: str, message: str) -> None:
    plugin = write_exec_plugin(tmp_path, status, code=code, version=version)
    with pytest.raises(CredentialsError, match=message) as caught:
        load_config(CredentialSource(write_kubeconfig(tmp_path / "config", user={"exec": plugin})))
    assert "exec plugin ./plugin.sh" in caught.value.message


def test_a_missing_exec_plugin_is_reported_with_its_install_hint(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "no-such-plugin",
        "installHint": "get it there",
    }
    with pytest.raises(CredentialsError, match="no-such-plugin is not installed: get it there"):
        load_config(CredentialSource(write_kubeconfig(tmp_path / "config", user={"exec": plugin})))


def test_a_server_s_certificate_is_verified_unless_insecure(tmp_path: Path) -> None:
    async def main() -> None:
        cluster = {"server": "https://x", "insecure-skip-tls-verify": True}
        credentials = Credentials(
            CredentialSource(write_kubeconfig(tmp_path / "config", cluster=cluster)), current_loop()
        )
        access = await credentials.get_current_config()
        assert access.tls is not None
        assert access.tls.verify_mode is ssl.CERT_NONE

    run(main())


def test_a_ca_is_not_ignored_because_of_the_insecure_flag(tmp_path: Path) -> None:
    """Source: client-go/transport/transport.go, TLSConfigFor (1.36)."""
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")

    async def main() -> None:
        cluster = {"server": "https://x", "insecure-skip-tls-verify": True, "certificate-authority": "ca.crt"}
        source = CredentialSource(write_kubeconfig(tmp_path / "config", cluster=cluster))
        with pytest.raises(CredentialsError) as caught:
            await Credentials(source, current_loop()).get_current_config()
        assert caught.value.message == (
            "certificates for https://x: specifying a root certificates file with the insecure flag is not allowed"
        )

    run(main())


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({}, '"" is not the URL of a server: no http or https'),
        ({"server": "unix:///s"}, '"unix:///s" is not the URL of a server: no http or https'),
        ({"server": "https://h:99999"}, '"https://h:99999" is not the URL of a server: Port out of range 0-65535'),
        ({"server": "https://a..b"}, '"https://a..b" is not the URL of a server: an invalid host name'),
        ({"server": "https://ann:pw@h"}, '"https://...@h" is not the URL of a server: a user is not supported here'),
        (
            {"server": "https://h", "proxy-url": "socks5://p"},
            '"socks5://p" is not the URL of a proxy: no http or https',
        ),
    ],
    ids=["nothing", "a socket", "a port", "a host name", "a password", "a proxy"],
)
def test_an_invalid_url_is_one_line(tmp_path: Path, cluster: dict[str, Any], message: str) -> None:
    settings = [
        "--master, or the server in the kubeconfig",
        "HTTPS_PROXY, HTTP_PROXY, or proxy-url in the kubeconfig",
    ]
    file = write_kubeconfig(tmp_path / "config", clusters=[{"name": "there", "cluster": cluster}])
    with pytest.raises(CredentialsError) as caught:
        load_config(CredentialSource(file))
    assert caught.value.message == f"{message}; change {settings['proxy-url' in cluster]}"


def test_a_proxy_is_taken_from_the_cluster_or_else_from_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://env:3128", "NO_PROXY": "two"}
    file = write_kubeconfig(tmp_path / "config", cluster={"proxy-url": "http://own:3128"})
    assert load_config(CredentialSource(file, environ=environ)).proxy_url == "http://own:3128"
    assert (
        load_config(CredentialSource(write_kubeconfig(tmp_path / "config"), environ=environ)).proxy_url
        == "http://env:3128"
    )
    assert load_config(CredentialSource(master="https://two", environ=environ)).proxy_url == ""
