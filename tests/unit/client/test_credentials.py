"""Credentials are cached, and loaded again when tokens or certificate files change."""

import asyncio
import os
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from extender.client.credentials import Credentials
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource
from tests.unit.client.kubeconfig_files import write_exec_plugin, write_kubeconfig
from tests.unit.client.virtual_time import current_loop, run
from tests.unit.scheduler.builders import ManualClock


def test_a_token_file_is_read_again_every_minute_and_an_unreadable_one_keeps_the_old_token(tmp_path: Path) -> None:
    token = tmp_path / "token"

    async def main() -> list[str]:
        token.write_text("one")
        credentials = Credentials(
            CredentialSource(write_kubeconfig(tmp_path / "config", user={"tokenFile": "token"})), current_loop()
        )
        seen = []
        for text, wait in (("one", 59), ("two", 59), ("two", 2), ("", 61), ("three", 11)):
            token.write_text(text)
            await asyncio.sleep(wait)
            seen.append((await credentials.get_current_config()).config.headers[0][1])
        return seen

    assert run(main()) == [f"Bearer {token}" for token in ("one", "one", "two", "two", "three")]


def test_an_exec_plugin_runs_again_shortly_before_its_token_expires(tmp_path: Path) -> None:
    async def main() -> list[int]:
        ends = current_loop().now() + 100
        text = f'{{"token":"x","expirationTimestamp":"{_rfc3339(ends)}"}}'
        file = write_kubeconfig(tmp_path / "config", user={"exec": write_exec_plugin(tmp_path, text)})
        credentials = Credentials(CredentialSource(file), current_loop())
        runs = []
        for wait in (0, 80, 15):
            await asyncio.sleep(wait)
            await credentials.get_current_config()
            runs.append((tmp_path / "runs").read_text().count("me"))
        return runs

    assert run(main()) == [1, 1, 2]


def test_a_slow_exec_plugin_goes_on_if_the_tasks_that_wait_for_it_are_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        file = write_kubeconfig(tmp_path / "config", user={"exec": write_exec_plugin(tmp_path, '{"token":"x"}')})
        credentials = Credentials(CredentialSource(file), current_loop())
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await credentials.get_current_config()
        first, second = await asyncio.gather(credentials.get_current_config(), credentials.get_current_config())
        assert first is second
        assert (tmp_path / "runs").read_text().count("me") == 1
        assert (await credentials.replace_rejected(first)).generation == 2

    run(main())


def test_requests_go_on_with_a_valid_token_while_an_exec_plugin_is_slow(tmp_path: Path) -> None:
    """The renewal of the lease cannot wait for it."""
    clock = ManualClock()
    blocker = tmp_path / "blocker"
    os.mkfifo(blocker)

    async def main() -> list[int]:
        plugin = write_exec_plugin(tmp_path, f'{{"token":"x","expirationTimestamp":"{_rfc3339(clock.now() + 100)}"}}')
        credentials = Credentials(CredentialSource(write_kubeconfig(tmp_path / "c", user={"exec": plugin})), clock)
        generations = [(await credentials.get_current_config()).generation]
        plugin_file = tmp_path / "plugin.sh"
        plugin_file.write_text(plugin_file.read_text().replace("#!/bin/sh", f"#!/bin/sh\nread line < '{blocker}'"))
        clock.seconds += 95.0
        async with asyncio.timeout(10):
            generations.append((await credentials.get_current_config()).generation)
        clock.seconds += 1.0
        async with asyncio.timeout(0.5):
            generations.append((await credentials.get_current_config()).generation)
        clock.seconds += 10.0
        waiting = asyncio.create_task(credentials.get_current_config())
        assert not (await asyncio.wait({waiting}, timeout=0.1))[0]
        await asyncio.to_thread(blocker.write_text, "go on\n")
        return [*generations, (await waiting).generation]

    assert asyncio.run(main()) == [1, 1, 1, 2]


def test_a_process_that_ends_does_not_wait_for_an_exec_plugin_that_hangs(tmp_path: Path) -> None:
    started, blocker = tmp_path / "started", tmp_path / "blocker"
    os.mkfifo(started)
    os.mkfifo(blocker)

    async def main() -> str:
        plugin = write_exec_plugin(tmp_path, '{"token":"x"}')
        plugin_file = tmp_path / "plugin.sh"
        head = f"#!/bin/sh\necho $$ > '{started}'\nread line < '{blocker}'"
        plugin_file.write_text(plugin_file.read_text().replace("#!/bin/sh", head))
        credentials = Credentials(
            CredentialSource(write_kubeconfig(tmp_path / "c", user={"exec": plugin})), ManualClock()
        )
        waiting = asyncio.create_task(credentials.get_current_config())
        process_id = await asyncio.to_thread(started.read_text)
        assert not waiting.done()
        return process_id

    start_time = time.monotonic()
    process_id = int(asyncio.run(main()))
    assert time.monotonic() - start_time < 20  # a plugin has a minute
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_a_running_process_keeps_its_cluster_if_the_current_context_changes(tmp_path: Path) -> None:
    """Client-go loads a kubeconfig once, so `kubectl config use-context` changes only later commands."""
    contexts = [
        {"name": "here", "context": {"cluster": "there", "user": "me"}},
        {"name": "other", "context": {"cluster": "elsewhere", "user": "me"}},
    ]
    clusters = [
        {"name": "there", "cluster": {"server": "https://one:8080"}},
        {"name": "elsewhere", "cluster": {"server": "http://two:8080"}},
    ]

    async def main() -> None:
        file = write_kubeconfig(tmp_path / "config", user={"token": "old"}, contexts=contexts, clusters=clusters)
        credentials = Credentials(CredentialSource(file), current_loop())
        first = await credentials.get_current_config()
        write_kubeconfig(
            tmp_path / "config",
            user={"token": "new"},
            contexts=contexts,
            clusters=clusters,
            **dict[str, Any]({"current-context": "other"}),
        )
        second = await credentials.replace_rejected(first)
        assert second.config.server == "https://one:8080"
        assert second.config.headers == (("Authorization", "Bearer new"),)

    run(main())


def test_credentials_for_another_api_server_are_not_used(tmp_path: Path) -> None:
    """Without its kubeconfig, a process in a pod would find the service account of the pod's cluster."""

    async def main() -> None:
        (tmp_path / "token").write_text("token of the pod")
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
        environ = {
            "KUBECONFIG": write_kubeconfig(tmp_path / "config", user={"token": "old"}),
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "KUBERNETES_SERVICE_PORT": "443",
        }
        source = CredentialSource(environ=environ, service_account_dir=tmp_path)
        credentials = Credentials(source, current_loop())
        first = await credentials.get_current_config()
        (tmp_path / "config").unlink()
        with pytest.raises(CredentialsError) as caught:
            await credentials.replace_rejected(first)
        assert caught.value.message == "they are for another API server, https://10.0.0.1:443; restart to use it"
        assert (await credentials.get_current_config()).config.server == "https://one:8080"
        write_kubeconfig(tmp_path / "config", user={"token": "new"})
        third = await credentials.replace_rejected(first)
        assert third.config.headers == (("Authorization", "Bearer new"),)

    run(main())


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_tls_settings_stay_the_same_object_until_a_certificate_changes(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    cluster = {"server": "https://x", "certificate-authority": "ca.crt", "tls-server-name": "other"}
    user = {"client-certificate": "me.crt", "client-key": "me.key"}

    def issue() -> None:
        certificate = authority.issue_cert("me@example.org")
        certificate.cert_chain_pems[0].write_to_path(tmp_path / "me.crt")
        certificate.private_key_pem.write_to_path(tmp_path / "me.key")

    async def main() -> None:
        issue()
        file = write_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
        credentials = Credentials(CredentialSource(file), current_loop())
        first = await credentials.get_current_config()
        assert first.tls is not None
        assert first.tls.verify_mode is ssl.CERT_REQUIRED
        assert first.tls.check_hostname
        assert first.config.server_name == "other"
        same = await credentials.replace_rejected(first)
        assert same.tls is first.tls
        issue()
        other = await credentials.replace_rejected(same)
        assert other.tls is not first.tls

    run(main())


def test_a_rotated_ca_is_trusted_within_a_minute(tmp_path: Path) -> None:
    async def main() -> None:
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
        file = write_kubeconfig(
            tmp_path / "config", cluster={"server": "https://x", "certificate-authority": "ca.crt"}, user={"token": "t"}
        )
        credentials = Credentials(CredentialSource(file), current_loop())
        first = await credentials.get_current_config()
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
        await asyncio.sleep(59)
        assert (await credentials.get_current_config()).tls is first.tls
        await asyncio.sleep(2)
        rotated = await credentials.get_current_config()
        (tmp_path / "ca.crt").write_text("half-written")
        await asyncio.sleep(61)
        last = await credentials.get_current_config()
        assert rotated.tls is not first.tls
        assert last.tls is rotated.tls

    run(main())


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key"])
def test_a_certificate_or_key_of_more_than_16_mib_is_an_error(tmp_path: Path, field: str) -> None:
    big_file = tmp_path / "big"
    with big_file.open("wb") as stream:
        stream.truncate(16 * 1024**2 + 1)
    trustme.CA().cert_pem.write_to_path(tmp_path / "small")
    names = dict.fromkeys(("certificate-authority", "client-certificate", "client-key"), "small") | {field: "big"}
    cluster = {"server": "https://x", "certificate-authority": names.pop("certificate-authority")}

    async def main() -> None:
        source = CredentialSource(write_kubeconfig(tmp_path / "config", cluster=cluster, user=names))
        with pytest.raises(CredentialsError) as caught:
            await Credentials(source, current_loop()).get_current_config()
        assert caught.value.message == f"certificates for https://x: {big_file}: has more than 16 MiB"

    run(main())


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate and client-key"])
def test_a_certificate_that_is_no_pem_is_named_by_its_field(tmp_path: Path, field: str) -> None:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca")
    (tmp_path / "other").write_text("hello")
    cluster = {"server": "https://x", "certificate-authority": "other" if field == "certificate-authority" else "ca"}
    user = {"client-certificate": "other", "client-key": "other"}

    async def main() -> None:
        source = CredentialSource(write_kubeconfig(tmp_path / "config", cluster=cluster, user=user))
        with pytest.raises(CredentialsError) as caught:
            await Credentials(source, current_loop()).get_current_config()
        assert caught.value.message.startswith(f"certificates for https://x: {field}: [")

    run(main())
