"""A configuration that changes is taken over by `extender serve` as it runs, as a whole or not at all."""

import asyncio
import os
import signal
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from extender.cli.flags import parse
from extender.cli.schedule_flags import FLAGS as SCHEDULE_FLAGS
from extender.cli.schedule_options import options_of as schedule_options
from extender.process import backing, freshness
from extender.process.running import run as schedule
from extender.sandbox.faults import Fault, Spoiled
from extender.sandbox.reviews import Reviews
from extender.sandbox.served import BY_KIND, PODS
from extender.sandbox.server import Sandbox
from tests.controlplane.process import free_ports
from tests.flows.test_live_extender import CONFIG, SECONDS, Live, a_node, a_pod, go, live

VOLUMES = BY_KIND["v1", "PersistentVolume"]
PROFILE = CONFIG + "profiles:\n- schedulerName: default-scheduler\n  plugins: "
WITHOUT_FIT = PROFILE + "{multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"
NAMES = "PrioritySort", "NodeResourcesFit", "DefaultBinder"
ALONE = ", ".join(f"{{name: {name}}}" for name in NAMES)
FIT_ALONE = PROFILE + f'{{multiPoint: {{disabled: [{{name: "*"}}], enabled: [{ALONE}]}}}}\n'
RENAMED = CONFIG + "profiles: [{schedulerName: renamed}]\n"
WRONG = CONFIG + "profiles: [{schedulerName: a, percentageOfNodesToScore: 101}, {schedulerName: a}]\n"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "LOOK", 0.02)


def mounted(folder: Path, text: str, generation: str) -> Path:
    """A ConfigMap with the configuration *text*, mounted, or changed, as a kubelet does it."""
    (folder / f"..{generation}").mkdir()
    (folder / f"..{generation}" / "scheduler.yaml").write_text(text)
    (folder / "..new").symlink_to(f"..{generation}")
    (folder / "..new").rename(folder / "..data")
    file = folder / "scheduler.yaml"
    if not file.is_symlink():
        file.symlink_to("..data/scheduler.yaml")
    return file


async def told(it: Live, *lines: str) -> None:
    """Wait until these lines stand on the page of metrics."""

    async def stand() -> bool:
        page = (await it.get("/metrics", bearer="any"))[1].splitlines()
        return all(line in page for line in lines)

    await it.until(stand)


def reloads(result: str, count: int) -> str:
    return f'extender_reloads_total{{result="{result}",what="configuration"}} {count}.0'


WELL = 'extender_last_reload_successful{what="configuration"} 1.0'
ILL = 'extender_last_reload_successful{what="configuration"} 0.0'


def test_a_mounted_configuration_that_changes_decides_from_then_on(tmp_path: Path) -> None:
    async def main() -> None:
        file = mounted(tmp_path, CONFIG, "one")
        async with live(tmp_path, f"--config={file}") as it:
            pod = it.sandbox.api.add(a_pod("web", cpu="2"))
            assert (await it.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]
            await told(it, WELL, reloads("success", 0), reloads("failure", 0))
            mounted(tmp_path, WITHOUT_FIT, "two")
            await told(it, WELL, reloads("success", 1), reloads("failure", 0))
            assert (await it.filter(pod, "n1", "n2"))["NodeNames"] == ["n1", "n2"]
            assert await it.bind(pod, "n2") == ""
            mounted(tmp_path, CONFIG, "three")
            await told(it, WELL, reloads("success", 2))
            another = it.sandbox.api.add(a_pod("another", cpu="2"))
            assert (await it.filter(another, "n1", "n2"))["NodeNames"] == ["n1"]

    go(main())


def test_what_is_wrong_is_told_once_with_every_fault_and_the_old_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            pod = it.sandbox.api.add(a_pod("web", cpu="2"))
            (tmp_path / "config.yaml").write_text(WRONG)
            await told(it, ILL, reloads("failure", 1))
            assert (await it.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]
            (tmp_path / "config.yaml").unlink()
            await told(it, ILL, reloads("failure", 2))
            (tmp_path / "config.yaml").write_text(WITHOUT_FIT)
            await told(it, WELL, reloads("failure", 2), reloads("success", 1))
            assert (await it.filter(pod, "n1", "n2"))["NodeNames"] == ["n1", "n2"]

    go(main())
    lines = [record for record in caplog.records if "cannot be taken over" in record.getMessage()]
    assert [record.getMessage() for record in lines] == [
        "The configuration cannot be taken over, the old one stays in force"
    ] * 2
    first, second = (str(vars(record)["err"]) for record in lines)
    assert "profiles[0].percentageOfNodesToScore: Invalid value: 101" in first
    assert 'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"' in first
    assert second == f"open {tmp_path}/config.yaml: no such file or directory"


def a_volume_near(place: str) -> list[dict[str, Any]]:
    """A volume that only nodes near *place* reach, and the claim `data` bound to it."""
    term = {"matchExpressions": [{"key": "near", "operator": "In", "values": [place]}]}
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


def test_kinds_that_it_needs_besides_are_listed_before_it_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The two refusals are waited out for longer than this; a list that is answered takes much less.
    monkeypatch.setattr(backing, "LISTING", 1.0)
    refused = Fault(what=Spoiled.STATUS, verb="list", resource="persistentvolumes", code=403, times=2)

    async def main() -> None:
        file = mounted(tmp_path, FIT_ALONE, "one")
        async with live(tmp_path, f"--config={file}", faults=(refused,)) as it:
            near, far = a_node("near"), a_node("far")
            near["metadata"]["labels"] = {"near": "here"}
            for each in (*a_volume_near("here"), near, far):
                it.sandbox.api.add(each)
            volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            pod = it.sandbox.api.add(a_pod("web", volumes=volumes))

            async def both() -> bool:
                return bool((await it.filter(pod, "near", "far"))["NodeNames"] == ["near", "far"])

            await it.until(both)
            mounted(tmp_path, CONFIG, "two")
            await told(it, ILL)
            assert await both()
            assert await it.is_ready()
            await told(it, WELL, reloads("success", 1))
            answer = await it.filter(pod, "near", "far")
            refusal = "node(s) didn't match PersistentVolume's node affinity"
            assert (answer["NodeNames"], answer["FailedAndUnresolvableNodes"]) == (["near"], {"far": refusal})
            it.sandbox.api.remove(VOLUMES, "", "disk")

            async def followed() -> bool:
                return (await it.filter(pod, "near"))["NodeNames"] == []

            await it.until(followed)

    go(main())


def test_pods_of_a_profile_that_is_new_are_bound_and_those_of_one_that_is_gone_are_not(tmp_path: Path) -> None:
    async def main() -> None:
        async with live(tmp_path) as it:
            new = it.sandbox.api.add(a_pod("new", schedulerName="renamed"))
            it.sandbox.api.add(
                a_pod("waits", cpu="4", schedulerName="renamed", priorityClassName="system-node-critical")
            )
            status = {"phase": "Pending", "nominatedNodeName": "n1"}
            it.sandbox.api.change(PODS, "default", "waits", lambda pod: {**pod, "status": status})
            old = it.sandbox.api.add(a_pod("old"))
            assert (await it.filter(old, "n1"))["NodeNames"] == ["n1"]
            (tmp_path / "config.yaml").write_text(RENAMED)
            await told(it, reloads("success", 1))
            assert (await it.filter(new, "n1"))["FailedNodes"] == {
                "n1": "Insufficient cpu"
            }  # kept for the one that waits
            assert await it.bind(new, "n2") == ""
            assert (await it.bind(old, "n1")).startswith('pod default/old is for the scheduler "default-scheduler"')
            page = (await it.get("/metrics", bearer="any"))[1]
            assert 'plugin="NodeResourcesFit",profile="renamed"' in page

    go(main())


@pytest.mark.parametrize(
    ("flags", "text", "why"),
    [
        ((), CONFIG.replace("qps: 1000", "qps: 7"), "clientConnection: a change of it takes a restart"),
        (("--standalone",), WITHOUT_FIT, "with --standalone a change of it takes a restart"),
    ],
    ids=["the connection to the API server", "the loop in the same process"],
)
def test_what_takes_a_restart_is_said_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, flags: tuple[str, ...], text: str, why: str
) -> None:
    async def main() -> None:
        async with live(tmp_path, *flags) as it:
            pod = {**a_pod("web", cpu="2"), "metadata": {"name": "web", "namespace": "default", "uid": "1"}}
            (tmp_path / "config.yaml").write_text(text)
            await told(it, ILL, reloads("failure", 1), reloads("success", 0))
            assert (await it.filter(pod, "n1", "n2"))["NodeNames"] == ["n1"]

    go(main())
    assert why in [vars(record).get("err") for record in caplog.records]


def test_the_service_of_the_scheduler_trusts_the_authorities_that_its_file_holds_now(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    authorities, kubeconfig, config = tmp_path / "ca.crt", tmp_path / "kubeconfig", tmp_path / "config.yaml"
    authorities.write_bytes(old.cert_pem.bytes())
    config.write_text(CONFIG.replace("qps:", f"kubeconfig: {kubeconfig}, qps:"))
    port = free_ports(1)[0]
    words = [
        f"--authorization-kubeconfig={kubeconfig}", f"--config={config}",
        f"--secure-port={port}", "--bind-address=127.0.0.1", f"--client-ca-file={authorities}",
    ]  # fmt: skip

    async def lets_in(authority: trustme.CA) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        authority.issue_cert(common_name="alice").configure_cert(context)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://127.0.0.1:{port}/metrics", ssl=context) as answer,
            ):
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def until(authority: trustme.CA) -> None:
        async with asyncio.timeout(SECONDS):
            while not await lets_in(authority):
                await asyncio.sleep(0.02)

    async def main() -> None:
        async with Sandbox(reviews=Reviews(allows=lambda spec: (spec["user"] == "alice", ""))) as sandbox:
            kubeconfig.write_text(sandbox.kubeconfig())
            serving = asyncio.create_task(schedule(schedule_options(parse(words, SCHEDULE_FLAGS))))
            await until(old)
            assert not await lets_in(new)
            authorities.write_bytes(new.cert_pem.bytes())
            await until(new)
            assert not await lets_in(old)
            os.kill(os.getpid(), signal.SIGTERM)
            assert await asyncio.wait_for(serving, SECONDS) == 0

    go(main())
