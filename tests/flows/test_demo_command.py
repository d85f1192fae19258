"""`extender demo` as a subprocess: it ends by itself, shows what happens, and keeps running with --serve."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
DEMO = [sys.executable, "-m", "extender", "demo"]
TIMES = re.compile(r"\d+ ms")


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *arguments], check=False, capture_output=True, text=True, timeout=60)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def output_lines() -> list[str]:
    process = run_demo("--speed", "4")
    assert (process.returncode, process.stderr) == (0, "")
    return lines(process.stdout)


def test_it_ends_with_the_summary_that_the_readme_shows(output_lines: list[str]) -> None:
    block = re.search(r"(?ms)^```console\n\$ extender demo\n(.*?)^```$", README.read_text())
    assert block is not None
    shown = [TIMES.sub("N ms", line) for line in lines(block[1])]
    start = shown.index("Summary")
    assert shown[start:] == [TIMES.sub("N ms", line) for line in output_lines[output_lines.index("Summary") :]]


def test_the_pending_cache_is_scheduled_on_the_node_that_joins(output_lines: list[str]) -> None:
    entries = [line[8:] for line in output_lines if "cache-4" in line or "node-new joins" in line]
    assert [line.split()[0] for line in entries] == ["arrived", "waits", "node", "placed"]
    assert "didn't match pod anti-affinity rules" in entries[1]
    assert "shop/cache-4 on node-new after" in entries[3]


def test_the_urgent_pod_is_scheduled_after_its_victim_is_deleted(output_lines: list[str]) -> None:
    entries = [
        " ".join(line[8:].split()) for line in output_lines if "ml/answers" in line or "ml/training-2 is gone" in line
    ]
    assert entries[:4] == [
        "arrived ml/answers",
        "waits ml/answers 0/10 nodes are available: 10 Insufficient nvidia.com/gpu",
        "preempted ml/training-2 makes room for ml/answers",
        "ended ml/training-2 is gone",
    ]
    assert entries[4].startswith("placed ml/answers on gpu-1 after")


def test_more_pods_than_the_nodes_can_take_are_a_one_line_error() -> None:
    process = run_demo("--nodes", "3", "--pods", "1000")
    assert process.returncode == 2
    assert "1000 are too many for 3 nodes; at most 80 per node" in process.stderr


def test_a_port_in_use_is_a_one_line_error() -> None:
    with serving() as first:
        port = first[0].partition("http://127.0.0.1:")[2].partition(",")[0]
        done = run_demo("--port", port)
    assert (done.returncode, done.stderr) == (
        1,
        f"extender: port {port}: address already in use; choose another port with --port\n",
    )


@contextmanager
def serving() -> Iterator[list[str]]:
    """A demo that keeps running, and its first lines."""
    command = [*DEMO, "--serve", "--speed", "20", "--pods", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline() for _ in range(4)]
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, "")
            assert "Summary" in out
        finally:
            process.kill()  # after a failure, which would otherwise wait for the process


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_with_serve_it_runs_for_kubectl_until_interrupted() -> None:
    with serving() as first:
        kubeconfig = first[1].removeprefix("export KUBECONFIG=").strip()
        shown = subprocess.run(
            ["kubectl", "--kubeconfig", kubeconfig, "get", "nodes"], check=True, capture_output=True, text=True
        ).stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:]][:2] == [["gpu-1", "Ready"], ["node-1", "Ready"]]
    assert not Path(kubeconfig).exists()


def test_a_closed_pipe_ends_it_without_an_error() -> None:
    command = [*DEMO, "--speed", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline()
            child.stdout.close()
            assert child.stderr is not None
            assert (child.stderr.read(), child.wait(60)) == ("", 0)
        finally:
            child.kill()  # after a failure, which would otherwise wait for the process
