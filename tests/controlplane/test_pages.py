"""The commands of the docs pages that need a cluster run on a real control plane."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.api_client import ApiClient
from tests.controlplane.control_plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.controlplane.scheduler_processes import create_all
from tests.doc_pages import DOCS, EXTENDER, ROOT, PageRunner, Step, parse_blocks, parse_steps


def make_node(name: str) -> dict[str, object]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": capacity, "allocatable": capacity}}


@pytest.fixture
def runner(control_plane: ControlPlane, api: ApiClient, tmp_path: Path) -> Iterator[PageRunner]:
    """Return a runner with kubectl and a cluster of two nodes."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    create_all(api, [make_node("n1"), make_node("n2")])
    kubeconfig = str(control_plane.write_kubeconfig(ADMIN))
    blocks = programs.find()
    assert isinstance(blocks, programs.Programs)
    verbs_port, schedule_port = map(str, free_ports(2))
    kube_scheduler = (blocks.path("kube-scheduler"), "--secure-port=0", "--leader-elect=false")
    runner = PageRunner(
        tmp_path,
        {
            "extender": EXTENDER,
            "kubectl": ("kubectl",),
            "curl": ("curl", "--noproxy", "*"),
            "kube-scheduler": kube_scheduler,
            "python": (sys.executable,),
        },
        {"8888": verbs_port, "10261": schedule_port, "/etc/kubernetes/scheduler.conf": kubeconfig},
        {"KUBECONFIG": kubeconfig, "NO_PROXY": "127.0.0.1"},
    )
    yield runner
    runner.stop_background_processes()
    # There is no kubelet that would end the pods.
    delete_flags = "--all --namespace=default --grace-period=0 --force"
    runner.run_step(Step(f"kubectl delete pods {delete_flags}", ()), time.sleep)
    runner.run_step(Step(f"kubectl delete events {delete_flags} --wait=false", ()), time.sleep)


def run_page(runner: PageRunner, page: Path, until: str = "") -> None:
    """Write the files of a page and run its commands up to the first that starts with *until*."""
    blocks = parse_blocks(page)
    runner.write_files(blocks)
    for step in parse_steps(blocks):
        if until and step.command.startswith(until):
            return
        runner.run_step(step, time.sleep)


def test_the_quick_start_of_the_standalone_scheduler(runner: PageRunner) -> None:
    run_page(runner, DOCS / "start" / "standalone.md")


def test_the_quick_start_beside_kube_scheduler(runner: PageRunner) -> None:
    run_page(runner, DOCS / "start" / "beside.md")


def test_the_operations_page(runner: PageRunner) -> None:
    run_page(runner, DOCS / "start" / "standalone.md", until="kubectl delete")
    run_page(runner, DOCS / "operations.md")


def test_the_readme_section_on_your_own_cluster(runner: PageRunner) -> None:
    runner.replacements = {**runner.replacements, "batch-scheduler": "default-scheduler"}
    runner.write_files(parse_blocks(DOCS / "start" / "standalone.md"))
    (runner.folder / "scheduler.yaml").write_text((runner.folder / "batch.yaml").read_text())
    runner.run_step(Step("kubectl apply -f giant.yaml", ("pod/giant created",)), time.sleep)
    section = (ROOT / "README.md").read_text().partition("## On your own cluster")[2].partition("\n## ")[0]
    page = runner.folder / "readme.md"
    section = section.replace("shop/api-7f4b-g3ypl", "default/giant")
    page.write_text(section.replace("deployment/web -n shop", "pod/giant -n default"))
    assert len(parse_steps(parse_blocks(page))) >= 5
    run_page(runner, page)
