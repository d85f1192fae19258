"""The image: what is in it, how it runs with no rights at all, and that it can be made again to the bit."""

import asyncio
import json
import shutil
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
import yaml

from extender.sandbox.server import Sandbox
from tests.controlplane.process import free_ports
from tests.image.building import ROOT, Builder, Image
from tests.image.running import Container, Program

DEMO: Final = ROOT / "docs" / "examples" / "demo" / "cluster.yaml"
_PATIENCE: Final = 60.0
_STEP: Final = 0.1


def asked(url: str, body: dict[str, Any] | None = None) -> Any:
    """What a service answers, whoever signed its certificate; None while it cannot be reached."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(url, data, timeout=10, context=trusting) as answer:  # noqa: S310  our own
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


async def until(condition: Any, container: Container) -> None:
    """Waits for something to become true, while the container runs."""
    limit = monotonic() + _PATIENCE
    while not await asyncio.to_thread(condition):
        assert container.running(), container.printed()
        assert monotonic() < limit, container.printed()
        await asyncio.sleep(_STEP)


def test_it_runs_as_nobody_and_says_what_it_is(image: Image) -> None:
    config = image.config()
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/opt/extender/bin/extender"]
    assert config["Labels"]["org.opencontainers.image.title"] == "kube-scheduler-extender"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert [setting for setting in config["Env"] if setting.startswith("PIP_")] == []


def test_it_has_a_list_of_its_parts_and_no_installer(files: Path) -> None:
    parts = json.loads((files / "opt/extender/sbom.cdx.json").read_text())
    names = {part["name"] for part in parts["components"]}
    assert {"kube-scheduler-extender", "fastapi", "numpy", "msgspec", "uvicorn"} <= names
    assert names & {"pip", "setuptools", "pytest", "mypy", "ruff"} == set()
    assert list((files / "opt/extender/lib").glob("python3*/site-packages/pip")) == []


def test_nothing_in_it_may_become_somebody_else(files: Path) -> None:
    ours = [path for path in (files / "opt").rglob("*") if path.is_file() and not path.is_symlink()]
    assert [str(path) for path in ours if path.stat().st_mode & 0o6022] == []


def test_every_module_is_compiled_without_a_time(files: Path) -> None:
    package = next((files / "opt/extender/lib").glob("python3*/site-packages/extender"))
    modules = [path for path in package.rglob("*.py") if "__pycache__" not in path.parts]
    compiled = {path.name.split(".")[0] for path in package.rglob("*.pyc")}
    assert {path.stem for path in modules} == compiled
    # Bytes 4 to 8 say how the source is compared: 1, by its hash, and never looked at.
    assert {path.read_bytes()[4:8] for path in package.rglob("*.pyc")} == {b"\x01\x00\x00\x00"}


def test_it_serves_a_filter_request_with_no_rights_and_ends_in_time(image: Image, files: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    shutil.copy(DEMO, given)
    given.chmod(0o755)
    port = free_ports(1)[0]
    command = ["serve", "-f", "/given/cluster.yaml", f"--port={port}"]
    pod = {"metadata": {"name": "new", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with Container(Program.of(image, files, command, {"/given": given}), tmp_path) as container:
        asyncio.run(until(lambda: asked(f"http://127.0.0.1:{port}/readyz"), container))
        status = container.status()
        assert status["Uid"].split() == ["65532"] * 4
        assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        body = {"Pod": pod, "NodeNames": ["general-a1", "general-c3"]}
        answer = json.loads(asked(f"http://127.0.0.1:{port}/filter", body))
        assert answer["NodeNames"] == ["general-a1"]
        assert answer["FailedAndUnresolvableNodes"] == {"general-c3": "node(s) were unschedulable"}
        code, seconds = container.terminate()
    assert code == 0, container.printed()
    assert seconds < 5


def test_its_root_cannot_be_written_to(image: Image, files: Path, tmp_path: Path) -> None:
    command = ["schedule", "--write-config-to=/opt/written.yaml"]
    with Container(Program.of(image, files, command), tmp_path) as container:
        container.ended()
        assert "Read-only file system" in container.printed()
    assert not (files / "opt/written.yaml").exists()


@pytest.mark.parametrize("count", [20])
def test_it_schedules(image: Image, files: Path, tmp_path: Path, count: int) -> None:
    async def scheduled() -> list[str]:
        async with Sandbox() as sandbox:
            capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
            for number in range(3):
                node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}
                sandbox.api.add({**node, "status": {"allocatable": capacity, "capacity": capacity}})
            for number in range(count):
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}", "namespace": "default"}}
                sandbox.api.add({**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            given = tmp_path / "given"
            given.mkdir()
            (given / "kubeconfig").write_text(yaml.safe_dump(yaml.safe_load(sandbox.kubeconfig())))
            flags = ["--kubeconfig=/given/kubeconfig", "--leader-elect=false", f"--secure-port={free_ports(1)[0]}"]
            with Container(Program.of(image, files, ["schedule", *flags], {"/given": given}), tmp_path) as container:
                url = f"{sandbox.url}/api/v1/namespaces/default/pods"

                def nodes() -> list[str]:
                    pods = json.loads(asked(url) or '{"items": []}')["items"]
                    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

                await until(lambda: len(nodes()) == count, container)
                assert await asyncio.to_thread(container.terminate) < (1, 10.0)
                return await asyncio.to_thread(nodes)

    assert set(asyncio.run(scheduled())) == {"node-0", "node-1", "node-2"}


def test_two_builds_are_one_image(builder: Builder, image: Image) -> None:
    again = builder.build("localhost/extender-again")
    assert again.layers() == image.layers()
    assert again.config() == image.config()
