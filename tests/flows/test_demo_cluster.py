"""The README's example cluster: every pending pod is pending for the reason in its comment."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.process import free_ports
from tests.doc_pages import EXTENDER, ROOT, PageRunner, parse_blocks, parse_steps

DEMO = Path(__file__).resolve().parents[2] / "docs" / "examples" / "demo"
FREE_GENERAL_NODES = [f"general-{zone}{number}" for zone in "ab" for number in (1, 2, 3)]
REJECTED = {
    "batch/month-end": "0/12 nodes are available: 1 node(s) were unschedulable, 3 node(s) had untolerated taint(s), "
    "8 Insufficient cpu, 8 Insufficient memory.",
    "ml/notebook": "0/12 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, "
    "3 node(s) had untolerated taint(s), 8 Insufficient nvidia.com/gpu.",
    "shop/frontend-5d8c-k7wzd": "0/12 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, "
    "3 node(s) had untolerated taint(s), 6 node(s) didn't match pod topology spread constraints.",
    "shop/cache-66d9-qm9rb": "0/12 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, "
    "3 node(s) had untolerated taint(s), 6 node(s) didn't match pod anti-affinity rules.",
    "ingress/gateway-canary": "0/12 nodes are available: 1 node(s) were unschedulable, "
    "3 node(s) didn't have free ports for the requested pod ports, 3 node(s) had untolerated taint(s), "
    "5 node(s) didn't match Pod's node affinity/selector.",
}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Return the explanations of all pending pods, by namespace and name."""
    command = [sys.executable, "-m", "extender", "explain", "-f", str(DEMO / "cluster.yaml"), "-o", "json"]
    pods: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["pods"]
    return pods


def test_eight_pods_are_pending(results: dict[str, Any]) -> None:
    assert set(results) == {*REJECTED, "shop/api-7f4b-g3ypl", "ml/trainer-2", "batch/import"}


@pytest.mark.parametrize("pod", REJECTED)
def test_a_pod_without_feasible_nodes_has_the_message_of_kube_scheduler(results: dict[str, Any], pod: str) -> None:
    assert results[pod]["filterMessage"] == REJECTED[pod]
    assert results[pod]["feasible"] == []


def test_another_replica_of_the_api_fits_on_general_nodes_with_free_resources(results: dict[str, Any]) -> None:
    assert results["shop/api-7f4b-g3ypl"]["feasible"] == FREE_GENERAL_NODES
    assert results["shop/api-7f4b-g3ypl"]["best"] != []


def test_a_trainer_gets_the_last_gpu(results: dict[str, Any]) -> None:
    assert results["ml/trainer-2"]["best"] == ["gpu-b1"]


def test_a_gated_pod_is_rejected_by_pre_enqueue(results: dict[str, Any]) -> None:
    assert results["batch/import"]["preEnqueue"]["plugin"] == "SchedulingGates"


def test_the_readme_shows_the_output_of_the_commands() -> None:
    command = [sys.executable, str(DEMO / "refresh.py"), "--check"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_verbs_answer_the_file_of_the_demo_as_the_readme_shows(tmp_path: Path) -> None:
    steps = parse_steps(parse_blocks(ROOT / "README.md"))
    over_http = [step for step in steps if step.command.startswith("extender serve") or "body.json" in step.command]
    assert len(over_http) == 4
    shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True)
    programs = {"extender": EXTENDER, "cat": ("cat",), "curl": ("curl", "--noproxy", "*")}
    runner = PageRunner(tmp_path, programs, {"8080": str(free_ports(1)[0])})
    try:
        for step in over_http:
            runner.run_step(step, time.sleep)
    finally:
        runner.stop_background_processes()
