"""The pages of docs/ that need a cluster, followed line by line on a real control plane."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.api import Api
from tests.controlplane.candidates import create
from tests.controlplane.plane import ADMIN, ControlPlane
from tests.controlplane.process import free_ports
from tests.pages import DOCS, EXTENDER, ROOT, Reader, Step, blocks, steps


def a_node(name: str) -> dict[str, object]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}


@pytest.fixture
def reader(control_plane: ControlPlane, api: Api, tmp_path: Path) -> Iterator[Reader]:
    """Somebody with kubectl and a cluster of two nodes."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    create(api, [a_node("n1"), a_node("n2")])
    kubeconfig = str(control_plane.kubeconfig(ADMIN))
    found = programs.find()
    assert isinstance(found, programs.Programs)
    verbs, pages = map(str, free_ports(2))
    kube_scheduler = (found.path("kube-scheduler"), "--secure-port=0", "--leader-elect=false")
    reader = Reader(
        tmp_path,
        {
            "extender": EXTENDER,
            "kubectl": ("kubectl",),
            "curl": ("curl", "--noproxy", "*"),
            "kube-scheduler": kube_scheduler,
            "python": (sys.executable,),
        },
        {"8888": verbs, "10261": pages, "/etc/kubernetes/scheduler.conf": kubeconfig},
        {"KUBECONFIG": kubeconfig, "NO_PROXY": "127.0.0.1"},
    )
    yield reader
    reader.leaves()
    # There is no kubelet that would let a pod go in its own time.
    everything = "--all --namespace=default --grace-period=0 --force"
    reader.types(Step(f"kubectl delete pods {everything}", ()), time.sleep)
    reader.types(Step(f"kubectl delete events {everything} --wait=false", ()), time.sleep)


def follows(reader: Reader, page: Path, until: str = "") -> None:
    """Write the page's files and type its commands, up to the first that begins so."""
    found = blocks(page)
    reader.writes(found)
    for step in steps(found):
        if until and step.command.startswith(until):
            return
        reader.types(step, time.sleep)


def test_the_quick_start_of_the_standalone_scheduler(reader: Reader) -> None:
    follows(reader, DOCS / "start" / "standalone.md")


def test_the_quick_start_beside_kube_scheduler(reader: Reader) -> None:
    follows(reader, DOCS / "start" / "beside.md")


def test_asking_why_a_pod_waits(reader: Reader) -> None:
    follows(reader, DOCS / "start" / "standalone.md", until="kubectl delete")
    follows(reader, DOCS / "operations.md")


def test_asking_about_one_s_own_cluster_as_the_readme_says(reader: Reader) -> None:
    reader.instead = {**reader.instead, "batch-scheduler": "default-scheduler"}
    reader.writes(blocks(DOCS / "start" / "standalone.md"))
    (reader.folder / "scheduler.yaml").write_text((reader.folder / "batch.yaml").read_text())
    reader.types(Step("kubectl apply -f giant.yaml", ("pod/giant created",)), time.sleep)
    section = (ROOT / "README.md").read_text().partition("## On your own cluster")[2].partition("\n## ")[0]
    page = reader.folder / "readme.md"
    page.write_text(section.replace("shop/api-7f4b-g3ypl", "default/giant"))
    assert len(steps(blocks(page))) >= 5
    follows(reader, page)
