"""The README's example cluster: every pod that waits there waits for the reason its comment gives."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "docs" / "examples" / "demo"
GENERAL_WITH_ROOM = [f"general-{zone}{number}" for zone in "ab" for number in (1, 2, 3)]
REFUSED = {
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
    """What `explain` says of every pod that waits, by namespace and name."""
    command = [sys.executable, "-m", "extender", "explain", "-f", str(DEMO / "cluster.yaml"), "-o", "json"]
    pods: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["pods"]
    return pods


def test_eight_pods_wait(results: dict[str, Any]) -> None:
    assert set(results) == {*REFUSED, "shop/api-7f4b-g3ypl", "ml/trainer-2", "batch/import"}


@pytest.mark.parametrize("pod", REFUSED)
def test_a_pod_that_no_node_takes_gets_the_message_of_kube_scheduler(results: dict[str, Any], pod: str) -> None:
    assert results[pod]["filterMessage"] == REFUSED[pod]
    assert results[pod]["feasible"] == []


def test_one_more_replica_of_the_api_fits_where_a_general_node_has_room(results: dict[str, Any]) -> None:
    assert results["shop/api-7f4b-g3ypl"]["feasible"] == GENERAL_WITH_ROOM
    assert results["shop/api-7f4b-g3ypl"]["best"] != []


def test_a_trainer_gets_the_last_gpu(results: dict[str, Any]) -> None:
    assert results["ml/trainer-2"]["best"] == ["gpu-b1"]


def test_a_gated_pod_is_held_back_before_the_queue(results: dict[str, Any]) -> None:
    assert results["batch/import"]["preEnqueue"]["plugin"] == "SchedulingGates"


def test_the_readme_shows_what_the_commands_print() -> None:
    command = [sys.executable, str(DEMO / "refresh.py"), "--check"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
