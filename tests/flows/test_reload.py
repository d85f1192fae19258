"""`extender serve` reloads a changed configuration as a whole or not at all, and changes its log verbosity.

`extender schedule` reloads client CAs.
"""

import asyncio
import os
import signal
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from extender.app import reload, serve_backend, telemetry
from extender.app.schedule import run as schedule
from extender.cli.pflag import parse
from extender.cli.schedule_flags import FLAGS as SCHEDULE_FLAGS
from extender.cli.schedule_options import make_schedule_options
from extender.fake_apiserver.registry.resources import PODS, RESOURCES_BY_KIND
from extender.fake_apiserver.registry.reviews import ReviewRules
from extender.fake_apiserver.server import FakeApiServer
from tests.controlplane.process import free_ports
from tests.faulty_apiserver import Fault, FaultKind
from tests.flows.test_live_extender import CONFIG, SECONDS, LiveExtender, go, live_extender, make_node, make_pod

VOLUMES = RESOURCES_BY_KIND["v1", "PersistentVolume"]
PROFILE = CONFIG + "profiles:\n- schedulerName: default-scheduler\n  plugins: "
WITHOUT_FIT = PROFILE + "{multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"
NAMES = "PrioritySort", "NodeResourcesFit", "DefaultBinder"
ENABLED = ", ".join(f"{{name: {name}}}" for name in NAMES)
FIT_ONLY = PROFILE + f'{{multiPoint: {{disabled: [{{name: "*"}}], enabled: [{ENABLED}]}}}}\n'
RENAMED = CONFIG + "profiles: [{schedulerName: renamed}]\n"
INVALID = CONFIG + "profiles: [{schedulerName: a, percentageOfNodesToScore: 101}, {schedulerName: a}]\n"


@pytest.fixture(autouse=True)
def _short_check_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "CHECK_SECONDS", 0.02)


def mount_config(folder: Path, text: str, generation: str) -> Path:
    """Write the configuration *text* as the kubelet mounts or updates a ConfigMap; return the file."""
    (folder / f"..{generation}").mkdir()
    (folder / f"..{generation}" / "scheduler.yaml").write_text(text)
    (folder / "..new").symlink_to(f"..{generation}")
    (folder / "..new").rename(folder / "..data")
    file = folder / "scheduler.yaml"
    if not file.is_symlink():
        file.symlink_to("..data/scheduler.yaml")
    return file


def replace_config(folder: Path, text: str) -> None:
    """Replace the configuration at once: a file written in place may be read while it is empty, which is a failure."""
    (folder / "new.yaml").write_text(text)
    (folder / "new.yaml").rename(folder / "config.yaml")


async def wait_for_metrics(extender: LiveExtender, *lines: str) -> None:
    """Wait until the page /metrics has these lines."""

    async def has_lines() -> bool:
        page = (await extender.get("/metrics", bearer="any"))[1].splitlines()
        return all(line in page for line in lines)

    await extender.wait_until(has_lines)


def reloads(result: str, count: int) -> str:
    return f'extender_reloads_total{{result="{result}",what="configuration"}} {count}.0'


LAST_RELOAD_SUCCEEDED = 'extender_last_reload_successful{what="configuration"} 1.0'
LAST_RELOAD_FAILED = 'extender_last_reload_successful{what="configuration"} 0.0'


def test_a_changed_mounted_configuration_applies_to_the_next_request(tmp_path: Path) -> None:
    async def main() -> None:
        file = mount_config(tmp_path, CONFIG, "one")
        async with live_extender(tmp_path, f"--config={file}") as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web", cpu="2"))
            assert (await extender.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]
            await wait_for_metrics(extender, LAST_RELOAD_SUCCEEDED, reloads("success", 0), reloads("failure", 0))
            mount_config(tmp_path, WITHOUT_FIT, "two")
            await wait_for_metrics(extender, LAST_RELOAD_SUCCEEDED, reloads("success", 1), reloads("failure", 0))
            assert (await extender.filter(pod, "n1", "n2"))["NodeNames"] == ["n1", "n2"]
            assert await extender.bind(pod, "n2") == ""
            mount_config(tmp_path, CONFIG, "three")
            await wait_for_metrics(extender, LAST_RELOAD_SUCCEEDED, reloads("success", 2))
            another = extender.api_server.api.create_from_manifest(make_pod("another", cpu="2"))
            assert (await extender.filter(another, "n1", "n2"))["NodeNames"] == ["n1"]

    go(main())


def test_an_invalid_configuration_is_logged_once_with_all_errors_and_the_old_one_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            pod = extender.api_server.api.create_from_manifest(make_pod("web", cpu="2"))
            replace_config(tmp_path, INVALID)
            await wait_for_metrics(extender, LAST_RELOAD_FAILED, reloads("failure", 1))
            assert (await extender.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]
            (tmp_path / "config.yaml").unlink()
            await wait_for_metrics(extender, LAST_RELOAD_FAILED, reloads("failure", 2))
            replace_config(tmp_path, WITHOUT_FIT)
            await wait_for_metrics(extender, LAST_RELOAD_SUCCEEDED, reloads("failure", 2), reloads("success", 1))
            assert (await extender.filter(pod, "n1", "n2"))["NodeNames"] == ["n1", "n2"]

    go(main())
    lines = [record for record in caplog.records if "cannot be reloaded" in record.getMessage()]
    assert [record.getMessage() for record in lines] == [
        "The configuration cannot be reloaded; the old one stays in force"
    ] * 2
    first, second = (str(vars(record)["err"]) for record in lines)
    assert "profiles[0].percentageOfNodesToScore: Invalid value: 101" in first
    assert 'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"' in first
    assert second == f"open {tmp_path}/config.yaml: no such file or directory"


def make_volume_near(location: str) -> list[dict[str, Any]]:
    """Return a volume that only nodes with the label near=*location* reach, and the claim `data` bound to it."""
    term = {"matchExpressions": [{"key": "near", "operator": "In", "values": [location]}]}
    size = {"storage": "1Gi"}
    claim: dict[str, Any] = {"metadata": {"name": "data", "namespace": "default"}}
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": "disk", "resources": {"requests": size}}
    volume = {
        "capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/disk"},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }  # fmt: skip
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "spec": spec, "status": {"phase": "Bound"}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": volume,
         "status": {"phase": "Bound"}},
    ]  # fmt: skip


def test_additional_kinds_are_listed_before_the_new_configuration_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The backoff after the two rejected lists is longer than this; a successful list takes much less.
    monkeypatch.setattr(serve_backend, "SYNC_TIMEOUT_SECONDS", 1.0)
    list_fault = Fault(kind=FaultKind.STATUS, verb="list", resource="persistentvolumes", code=403, times=2)

    async def main() -> None:
        file = mount_config(tmp_path, FIT_ONLY, "one")
        async with live_extender(tmp_path, f"--config={file}", faults=(list_fault,)) as extender:
            near, far = make_node("near"), make_node("far")
            near["metadata"]["labels"] = {"near": "here"}
            for manifest in (*make_volume_near("here"), near, far):
                extender.api_server.api.create_from_manifest(manifest)
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            pod = extender.api_server.api.create_from_manifest(make_pod("web", volumes=volumes))

            async def fits_both() -> bool:
                return bool((await extender.filter(pod, "near", "far"))["NodeNames"] == ["near", "far"])

            await extender.wait_until(fits_both)
            mount_config(tmp_path, CONFIG, "two")
            await wait_for_metrics(extender, LAST_RELOAD_FAILED)
            assert await fits_both()
            assert await extender.is_ready()
            await wait_for_metrics(extender, LAST_RELOAD_SUCCEEDED, reloads("success", 1))
            result = await extender.filter(pod, "near", "far")
            rejection = "node(s) didn't match PersistentVolume's node affinity"
            assert (result["NodeNames"], result["FailedAndUnresolvableNodes"]) == (["near"], {"far": rejection})
            extender.api_server.api.delete_now(VOLUMES, "", "disk")

            async def fits_nowhere() -> bool:
                return (await extender.filter(pod, "near"))["NodeNames"] == []

            await extender.wait_until(fits_nowhere)

    go(main())


def test_only_pods_of_the_new_profiles_can_be_bound(tmp_path: Path) -> None:
    async def main() -> None:
        async with live_extender(tmp_path) as extender:
            new = extender.api_server.api.create_from_manifest(make_pod("new", schedulerName="renamed"))
            extender.api_server.api.create_from_manifest(
                make_pod("waits", cpu="4", schedulerName="renamed", priorityClassName="system-node-critical")
            )
            status = {"phase": "Pending", "nominatedNodeName": "n1"}
            extender.api_server.api.guaranteed_update(PODS, "default", "waits", lambda pod: {**pod, "status": status})
            old = extender.api_server.api.create_from_manifest(make_pod("old"))
            assert (await extender.filter(old, "n1"))["NodeNames"] == ["n1"]
            replace_config(tmp_path, RENAMED)
            await wait_for_metrics(extender, reloads("success", 1))

            async def is_reserved() -> bool:
                return bool((await extender.filter(new, "n1"))["FailedNodes"] == {"n1": "Insufficient cpu"})

            await extender.wait_until(is_reserved)
            assert await extender.bind(new, "n2") == ""
            assert (await extender.bind(old, "n1")).startswith(
                'pod default/old is for the scheduler "default-scheduler"'
            )
            page = (await extender.get("/metrics", bearer="any"))[1]
            assert 'plugin="NodeResourcesFit",profile="renamed"' in page

    go(main())


@pytest.mark.parametrize(
    ("flags", "text", "error"),
    [
        ((), CONFIG.replace("qps: 1000", "qps: 7"), "a change of clientConnection requires a restart"),
        (("--standalone",), WITHOUT_FIT, "with --standalone a change of the configuration requires a restart"),
    ],
    ids=["the connection to the API server", "a scheduler in the same process"],
)
def test_a_change_that_requires_a_restart_is_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, flags: tuple[str, ...], text: str, error: str
) -> None:
    async def main() -> None:
        async with live_extender(tmp_path, *flags) as extender:
            pod = {**make_pod("web", cpu="2"), "metadata": {"name": "web", "namespace": "default", "uid": "1"}}
            replace_config(tmp_path, text)
            await wait_for_metrics(extender, LAST_RELOAD_FAILED, reloads("failure", 1), reloads("success", 0))
            assert (await extender.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]

    go(main())
    assert error in [vars(record).get("err") for record in caplog.records]


def test_the_scheduler_reloads_its_client_ca_file(tmp_path: Path) -> None:
    old_ca, new_ca = trustme.CA(), trustme.CA()
    ca_file, kubeconfig, config = tmp_path / "ca.crt", tmp_path / "kubeconfig", tmp_path / "config.yaml"
    ca_file.write_bytes(old_ca.cert_pem.bytes())
    config.write_text(CONFIG.replace("qps:", f"kubeconfig: {kubeconfig}, qps:"))
    port = free_ports(1)[0]
    arguments = [
        f"--authorization-kubeconfig={kubeconfig}", f"--config={config}",
        f"--secure-port={port}", "--bind-address=127.0.0.1", f"--client-ca-file={ca_file}",
    ]  # fmt: skip

    async def accepts(ca: trustme.CA) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        ca.issue_cert(common_name="alice").configure_cert(context)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://127.0.0.1:{port}/metrics", ssl=context) as response,
            ):
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def wait_until_accepted(ca: trustme.CA) -> None:
        async with asyncio.timeout(SECONDS):
            while not await accepts(ca):
                await asyncio.sleep(0.02)

    async def main() -> None:
        async with FakeApiServer(
            reviews=ReviewRules(authorize=lambda spec: (spec["user"] == "alice", ""))
        ) as api_server:
            kubeconfig.write_text(api_server.kubeconfig())
            serving = asyncio.create_task(schedule(make_schedule_options(parse(arguments, SCHEDULE_FLAGS))))
            await wait_until_accepted(old_ca)
            assert not await accepts(new_ca)
            ca_file.write_bytes(new_ca.cert_pem.bytes())
            await wait_until_accepted(new_ca)
            assert not await accepts(old_ca)
            os.kill(os.getpid(), signal.SIGTERM)
            assert await asyncio.wait_for(serving, SECONDS) == 0

    go(main())


def test_the_log_verbosity_changes_with_permission_from_the_api_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in kube-scheduler. Source: cmd/kube-scheduler/app/server.go, newEndpointsHandler (1.36)."""
    levels: list[int] = []
    monkeypatch.setattr(telemetry, "configure_logging", lambda logs: levels.append(logs.v))

    async def main() -> None:
        async with live_extender(tmp_path) as extender, aiohttp.ClientSession(extender.address) as session:
            assert (await session.put("/debug/flags/v", data="5")).status == 403
            headers = {"Authorization": "Bearer any"}
            assert (await session.put("/debug/flags/v", data="5", headers=headers)).status == 200

    go(main())
    assert levels == [5]
