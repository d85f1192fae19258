"""The image: its contents, its behaviour without privileges, and reproducible builds."""

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

from extender.fake_apiserver.server import FakeApiServer
from tests.controlplane.process import free_ports
from tests.image.container import Container, ContainerSpec
from tests.image.image_builder import ROOT, Builder, Image

DEMO: Final = ROOT / "docs" / "examples" / "demo" / "cluster.yaml"
# Building the image takes five minutes on two cores that run other tests.
pytestmark = pytest.mark.timeout(1200)

_TIMEOUT: Final = 60.0
_POLL_INTERVAL: Final = 0.1


def fetch(url: str, body: dict[str, Any] | None = None) -> Any:
    """Send a request without verifying certificates; return the response, or None if the server is unreachable."""
    tls_context = ssl.create_default_context()
    tls_context.check_hostname, tls_context.verify_mode = False, ssl.CERT_NONE
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(url, data, timeout=10, context=tls_context) as response:  # noqa: S310  only URLs of the test
            return response.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


async def wait_until(condition: Any, container: Container) -> None:
    """Wait until a condition is met while the container runs."""
    deadline = monotonic() + _TIMEOUT
    while not await asyncio.to_thread(condition):
        assert container.is_running(), container.output()
        assert monotonic() < deadline, container.output()
        await asyncio.sleep(_POLL_INTERVAL)


def test_it_has_an_unprivileged_user_and_labels(image: Image) -> None:
    config = image.config()
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/opt/extender/bin/extender"]
    assert config["Labels"]["org.opencontainers.image.title"] == "kube-scheduler-extender"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert [setting for setting in config["Env"] if setting.startswith("PIP_")] == []


def test_it_has_an_sbom_and_no_installer(files: Path) -> None:
    sbom = json.loads((files / "opt/extender/sbom.cdx.json").read_text())
    names = {component["name"] for component in sbom["components"]}
    assert {"kube-scheduler-extender", "fastapi", "numpy", "msgspec", "uvicorn"} <= names
    assert names & {"pip", "setuptools", "pytest", "mypy", "ruff"} == set()
    assert list((files / "opt/extender/lib").glob("python3*/site-packages/pip")) == []


def test_no_file_is_setuid_or_writable_by_others(files: Path) -> None:
    files_ = [path for path in (files / "opt").rglob("*") if path.is_file() and not path.is_symlink()]
    assert [str(path) for path in files_ if path.stat().st_mode & 0o6022] == []


def test_every_module_is_compiled_without_a_timestamp(files: Path) -> None:
    package = next((files / "opt/extender/lib").glob("python3*/site-packages/extender"))
    modules = [path for path in package.rglob("*.py") if "__pycache__" not in path.parts]
    compiled = {path.name.split(".")[0] for path in package.rglob("*.pyc")}
    assert {path.stem for path in modules} == compiled
    # Bytes 4 to 8 are the flags: 1 is an unchecked hash-based pyc.
    assert {path.read_bytes()[4:8] for path in package.rglob("*.pyc")} == {b"\x01\x00\x00\x00"}


def test_it_serves_a_filter_request_without_privileges_and_terminates_in_time(
    image: Image, files: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    shutil.copy(DEMO, folder)
    folder.chmod(0o755)
    port = free_ports(1)[0]
    command = ["serve", "-f", "/input/cluster.yaml", f"--port={port}"]
    pod = {"metadata": {"name": "new", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with Container(ContainerSpec.for_image(image, files, command, {"/input": folder}), tmp_path) as container:
        asyncio.run(wait_until(lambda: fetch(f"http://127.0.0.1:{port}/readyz"), container))
        status = container.status()
        assert status["Uid"].split() == ["65532"] * 4
        assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        body = {"Pod": pod, "NodeNames": ["general-a1", "general-c3"]}
        response = json.loads(fetch(f"http://127.0.0.1:{port}/filter", body))
        assert response["NodeNames"] == ["general-a1"]
        assert response["FailedAndUnresolvableNodes"] == {"general-c3": "node(s) were unschedulable"}
        code, seconds = container.terminate()
    assert code == 0, container.output()
    assert seconds < 5


def test_its_root_is_read_only(image: Image, files: Path, tmp_path: Path) -> None:
    command = ["schedule", "--write-config-to=/opt/written.yaml"]
    with Container(ContainerSpec.for_image(image, files, command), tmp_path) as container:
        container.wait()
        assert "Read-only file system" in container.output()
    assert not (files / "opt/written.yaml").exists()


@pytest.mark.parametrize("count", [20])
def test_it_schedules_pods(image: Image, files: Path, tmp_path: Path, count: int) -> None:
    async def scheduled() -> list[str]:
        async with FakeApiServer() as server:
            capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
            for number in range(3):
                node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}
                server.api.create_from_manifest({**node, "status": {"allocatable": capacity, "capacity": capacity}})
            for number in range(count):
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}", "namespace": "default"}}
                server.api.create_from_manifest({**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            folder = tmp_path / "input"
            folder.mkdir()
            (folder / "kubeconfig").write_text(yaml.safe_dump(yaml.safe_load(server.kubeconfig())))
            flags = [
                "--kubeconfig=/input/kubeconfig",
                "--leader-elect=false",
                f"--secure-port={free_ports(1)[0]}",
            ]
            with Container(
                ContainerSpec.for_image(image, files, ["schedule", *flags], {"/input": folder}), tmp_path
            ) as container:
                url = f"{server.url}/api/v1/namespaces/default/pods"

                def nodes() -> list[str]:
                    pods = json.loads(fetch(url) or '{"items": []}')["items"]
                    return [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]

                await wait_until(lambda: len(nodes()) == count, container)
                assert await asyncio.to_thread(container.terminate) < (1, 10.0)
                return await asyncio.to_thread(nodes)

    assert set(asyncio.run(scheduled())) == {"node-0", "node-1", "node-2"}


def test_two_builds_give_the_same_image(builder: Builder, image: Image) -> None:
    again = builder.build("localhost/extender-again")
    assert again.layers() == image.layers()
    assert again.config() == image.config()
