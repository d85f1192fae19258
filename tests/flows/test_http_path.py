"""The command `extender serve`, as a process of its own: it answers, drains when told to, says what is wrong."""

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
    """A server on a free port: the process, its address and port."""
    with subprocess.Popen(command("--port", "0", *options), stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "filter, prioritize and preempt at http://" in line, line
            address = urlsplit(next(word for word in line.split() if word.startswith("http://")))
            yield process, str(address.hostname), int(address.port or 0)
        finally:
            process.kill()


def ask(host: str, port: int, verb: str, names: list[str]) -> Any:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("POST", verb, json.dumps({"Pod": POD, "Nodes": None, "NodeNames": names}))
    response = connection.getresponse()
    assert response.status == 200
    answer = json.loads(response.read())
    connection.close()
    return answer


def test_the_verbs_answer_over_a_socket_and_sigterm_ends_the_process_in_good_order() -> None:
    with server() as (process, host, port):
        answer = ask(host, port, "/filter", ["general-a3", "general-c1", "general-c3", "gpu-a1"])
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
        scores = ask(host, port, "/prioritize", ["general-a3", "general-c1"])
        assert scores == [{"Host": "general-a3", "Score": 10}, {"Host": "general-c1", "Score": 0}]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_a_request_that_is_being_sent_when_the_process_is_told_to_stop_is_answered() -> None:
    body = json.dumps({"Pod": POD, "NodeNames": ["general-a3"]}).encode()
    head = f"POST /filter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with server() as (process, host, port), socket.create_connection((host, port), timeout=30) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")  # the request is being handled from here on
        process.send_signal(signal.SIGTERM)
        connection.sendall(body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b'"NodeNames":["general-a3"]' in answer
        assert process.wait(timeout=30) == 0


def test_totals_are_answered_in_the_raw_mode() -> None:
    with server("--score-range", "raw") as (_, host, port):
        scores = ask(host, port, "/prioritize", ["general-a3", "general-b3"])
        assert min(score["Score"] for score in scores) > 10


def test_a_port_that_is_in_use_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run(command("--port", str(port)), capture_output=True, text=True, timeout=60, check=False)
    line = f"extender: failed to listen on 127.0.0.1:{port}: address already in use; choose another with --port\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", line)


def test_an_address_of_another_machine_is_told_in_one_line() -> None:
    options = ("--bind-address", "host.invalid", "--anonymous-verbs")
    result = subprocess.run(command(*options), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("extender: failed to listen on host.invalid:8888: ")
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    line = [sys.executable, "-m", "extender", "serve", "-f", str(missing)]
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env={**os.environ})
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert str(missing) in result.stderr
