"""The longest response time of /livez while `extender serve` handles one large request.

    python tests/bench/liveness.py [CASE ...] [--runs 3]

`extender serve --without-cluster` gets requests near or above its limits: nodes, names, victims and pods. Another
connection asks for /livez every 2 ms. `livez_p50_ms` is the median over the runs of the longest response, and
`livez_max_ms` the maximum. `livez_cpu_max_ms` is the most CPU time of the server's main thread during one response:
other processes do not change it. Prints one JSON line per case.
"""

import argparse
import http.client
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, Popen
from threading import Event, Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names
from tests.bench.harness import cpu_seconds
from tests.controlplane.process import free_ports

POD = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"containers": []}}
UID = "a" * 36


def encode(value: Any) -> bytes:
    """Return *value* as JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def make_node(number: int, *, is_whole: bool) -> dict[str, Any]:
    """Make a node: only its name, or with the labels and images of a usual node (9 kB)."""
    if not is_whole:
        return {"metadata": {"name": f"node-{number}"}, "spec": {}, "status": {}}
    images = [
        {
            "names": [f"registry.example/team/app-{k}@sha256:{'0' * 64}", f"registry.example/team/app-{k}:v1.{number}"],
            "sizeBytes": 100_000 + k,
        }
        for k in range(50)
    ]
    labels = {f"l{k}": f"v{k}-{number}" for k in range(30)}
    allocatable = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}", "labels": labels},
        "spec": {},
        "status": {"allocatable": allocatable, "images": images},
    }


def make_nodes_request(count: int, *, is_whole: bool) -> bytes:
    """Make a request with whole nodes."""
    items = [make_node(number, is_whole=is_whole) for number in range(count)]
    return encode({"Pod": POD, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None})


def make_names_request(count: int) -> bytes:
    """Make a request with names."""
    return encode({"Pod": POD, "NodeNames": [f"n{number:06}" for number in range(count)]})


def make_victims_request(nodes: int, victims: int) -> bytes:
    """Make a preemption request with whole victims."""
    victim = {"metadata": {"uid": UID, "name": "x"}, "spec": {"containers": []}, "status": {}}
    by_node = {f"n{number}": {"Pods": [victim] * victims, "NumPDBViolations": 0} for number in range(nodes)}
    return encode({"Pod": POD, "NodeNameToVictims": by_node, "NodeNameToMetaVictims": None})


def make_pod_request(field: str, count: int) -> bytes:
    """Make a request whose pod has *count* empty objects in a list."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [], field: [{}] * count}}
    return encode({"Pod": pod, "NodeNames": ["a"]})


CASES = {
    "minimal-nodes": ("/filter", lambda: make_nodes_request(99_000, is_whole=False)),
    "minimal-nodes-prioritize": ("/prioritize", lambda: make_nodes_request(99_000, is_whole=False)),
    "too-many-nodes": ("/filter", lambda: make_nodes_request(280_000, is_whole=False)),
    "whole-nodes": ("/filter", lambda: make_nodes_request(15_000, is_whole=True)),
    "whole-nodes-prioritize": ("/prioritize", lambda: make_nodes_request(15_000, is_whole=True)),
    "names": ("/filter", lambda: make_names_request(99_000)),
    "names-prioritize": ("/prioritize", lambda: make_names_request(99_000)),
    "too-many-names": ("/filter", lambda: make_names_request(790_000)),
    "victims": ("/preempt", lambda: make_victims_request(2700, 30)),
    "containers": ("/filter", lambda: make_pod_request("containers", 1_000_000)),
    "tolerations": ("/filter", lambda: make_pod_request("tolerations", 1_000_000)),
}


@contextmanager
def run_extender() -> Iterator[tuple[int, int]]:
    """Run `extender serve` without a cluster; yield its process id and its port."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "extender", "serve", "--without-cluster", f"--port={port}"]
    with Popen(command, stderr=DEVNULL) as process:
        try:
            while True:
                with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
                    try:
                        connection.request("GET", "/livez")
                        break
                    except OSError:
                        time.sleep(0.1)
            yield process.pid, port
        finally:
            process.terminate()


def ask_livez(pid: int, port: int, stopped: Event, milliseconds: list[tuple[float, float]]) -> None:
    """Ask for /livez on new connections until *stopped*; append each response time and the server's CPU time in it."""
    while not stopped.wait(0.002):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
            started, cpu_start = time.perf_counter(), read_main_thread_ms(pid)
            connection.request("GET", "/livez")
            connection.getresponse().read()
            cpu = read_main_thread_ms(pid) - cpu_start
            milliseconds.append(((time.perf_counter() - started) * 1000, cpu))


def read_main_thread_ms(pid: int) -> float:
    """Return the CPU time of the main thread, in milliseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def send(port: int, path: str, body: bytes) -> tuple[str, float]:
    """Send a request; return the status, or the name of the error, and the seconds."""
    started = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            status = str(response.status)
        except OSError as error:  # the server closes the connection of a request that is too large
            status = type(error).__name__
    return status, time.perf_counter() - started


def read_rss_mb(pid: int) -> float:
    """Return the resident memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def measure(case: str, runs: int) -> dict[str, Any]:
    """Run a case several times on one server, and return its figures."""
    path, make_body = CASES[case]
    body, longest, longest_cpu, times, status = make_body(), [], [], [], ""
    with run_extender() as (pid, port):
        rss_start, cpu_start = read_rss_mb(pid), cpu_seconds(pid)
        for _ in range(runs):
            stopped, milliseconds = Event(), list[tuple[float, float]]()
            thread = Thread(target=ask_livez, args=(pid, port, stopped, milliseconds))
            thread.start()
            status, seconds = send(port, path, body)
            time.sleep(0.2)  # the request's memory is freed after the response
            stopped.set()
            thread.join()
            times.append(seconds)
            longest.append(max(wall for wall, _ in milliseconds))
            longest_cpu.append(max(cpu for _, cpu in milliseconds))
        return {
            "benchmark": "liveness", "case": case, "request_mb": round(len(body) / 2**20, 1), "status": status,
            "seconds": round(median(times), 2), "cpu_seconds": round((cpu_seconds(pid) - cpu_start) / runs, 2),
            "livez_p50_ms": round(median(longest), 1), "livez_max_ms": round(max(longest), 1),
            "livez_cpu_max_ms": round(max(longest_cpu), 1),
            "rss_growth_mb": round(read_rss_mb(pid) - rss_start, 1),
        }  # fmt: skip


def main() -> None:
    """Parse the command line and run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--runs", type=int, default=3, help="requests per case (3)")
    args = parser.parse_args()
    for case in check_names(parser, "case", args.cases, CASES) or CASES:
        print(json.dumps(measure(case, args.runs)), flush=True)


if __name__ == "__main__":
    main()
