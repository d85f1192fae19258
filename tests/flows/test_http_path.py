"""The command `extender serve` in its own process: responses, draining, and errors at the start."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CLUSTER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "demo" / "cluster.yaml"
POD = {
    "metadata": {"name": "trial", "namespace": "shop", "uid": "trial"},
    "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "750m", "memory": "1Gi"}}}]},
}


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "extender", "serve", "-f", str(CLUSTER), *options]


@contextmanager
def server(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """Run a server on a free port; return the process, its address and port."""
    with subprocess.Popen(command("--port", "0", *options), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "filter, prioritize and preempt at http://" in line, line
            address = urlsplit(next(word for word in line.split() if word.startswith("http://")))
            yield process, str(address.hostname), int(address.port or 0)
        finally:
            process.kill()


def post(host: str, port: int, verb: str, names: list[str]) -> Any:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("POST", verb, json.dumps({"Pod": POD, "Nodes": None, "NodeNames": names}))
    response = connection.getresponse()
    assert response.status == 200
    result = json.loads(response.read())
    connection.close()
    return result


def test_the_verbs_respond_over_a_socket_and_sigterm_ends_the_process_with_status_0() -> None:
    with server() as (process, host, port):
        answer = post(host, port, "/filter", ["general-a3", "general-c1", "general-c3", "gpu-a1"])
        assert answer == {
            "Nodes": None,
            "NodeNames": ["general-a3"],
            "FailedNodes": {"general-c1": "Insufficient cpu"},
            "FailedAndUnresolvableNodes": {
                "general-c3": "node(s) were unschedulable",
                "gpu-a1": "node(s) had untolerated taint(s)",
            },
            "Error": "",
        }
        scores = post(host, port, "/prioritize", ["general-a3", "general-c1"])
        assert scores == [{"Host": "general-a3", "Score": 10}, {"Host": "general-c1", "Score": 0}]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_running_request_is_answered_after_sigterm() -> None:
    body = json.dumps({"Pod": POD, "NodeNames": ["general-a3"]}).encode()
    head = f"POST /filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with server() as (process, host, port), socket.create_connection((host, port), timeout=30) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # the request is being handled from here on
        process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b'"NodeNames":["general-a3"]' in answer
        assert process.wait(timeout=30) == 0


def test_raw_scores_are_the_totals_of_the_profile() -> None:
    with server("--score-range", "raw") as (_, host, port):
        scores = post(host, port, "/prioritize", ["general-a3", "general-b3"])
        assert min(score["Score"] for score in scores) > 10


def test_a_web_page_reads_nothing() -> None:
    """A site can point its own name to 127.0.0.1 (DNS rebinding). The browser then lets its pages read the answers."""

    def get_status(method: str, path: str, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(host, port, timeout=30)
        body = json.dumps({"Pod": POD, "NodeNames": ["general-a3"]}) if method == "POST" else None
        connection.request(method, path, body, headers)
        status = connection.getresponse().status
        connection.close()
        return status

    rebound = {"Host": "evil.example"}
    with server("--ui") as (_, host, port):
        for path in ("/metrics", "/explain/shop/web", "/openapi.json", "/ui/"):
            assert get_status("GET", path, rebound) == 421, path
        assert get_status("GET", "/metrics", {"Host": f"localhost:{port}"}) == 200
        assert get_status("GET", "/livez", rebound) == 200
        for verb in ("/filter", "/prioritize", "/preempt"):
            assert get_status("POST", verb, {**rebound, "Origin": "http://evil.example"}) == 403, verb
        assert get_status("POST", "/filter", {"Host": "a.name.of.kube-scheduler"}) == 200


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = subprocess.run(command("--port", str(port)), capture_output=True, text=True, timeout=60, check=False)
    line = f"extender: failed to listen on 127.0.0.1:{port}: address already in use; choose another port with --port\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", line)


def test_an_unknown_address_is_one_line() -> None:
    options = ("--bind-address", "host.invalid", "--anonymous-verbs")
    result = subprocess.run(command(*options), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("extender: failed to listen on host.invalid:8888: ")
    assert result.stderr.count("\n") == 1


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    line = [sys.executable, "-m", "extender", "serve", "-f", str(missing)]
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert str(missing) in result.stderr
