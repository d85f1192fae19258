"""Time of filter and prioritize over HTTP: one JSON line per verb, form and number of nodes.

    python tests/bench/verbs.py [--requests 300] [--whole 20] [--slow 1000] [--filter-answer feasible] [CASE ...]

`extender serve` runs in a process of its own, with 5,000 nodes of realistic size. The requests are those of
kube-scheduler: filter, then prioritize, one after another on one connection. `user_ms` and `system_ms` are the CPU time
of the server per request. The case `500-rotating` has 500 other names in each request: kube-scheduler evaluates a part
of a sequence of all nodes for each pod. Every eighth request mixes the names of two such parts, as two workers of
kube-scheduler do that run at the same time. The case `500-mixed` has only such requests. The case `slow` has 1,000
other clients that never finish a head or a body.
"""

import argparse
import json
import os
import platform
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.arguments import check_names

NODES = 5000
CASES = ("500-names", "500-rotating", "500-mixed", "5000-names", "5000-nodes", "slow")
TICKS = os.sysconf("SC_CLK_TCK")


def node_name(number: int) -> str:
    """Return a node name as long as those of cloud providers."""
    return f"ip-10-{number // 250}-{number % 250}-7.eu-west-1.internal"


def make_node(number: int) -> dict[str, Any]:
    """Make a node of realistic size: 13 kB of JSON, mostly images."""
    name = node_name(number)
    images = [
        {
            "names": [f"registry.example/team-{index % 7}/service-{index}@sha256:{index * 7919 + number % 3:064x}",
                      f"registry.example/team-{index % 7}/service-{index}:v1.{index}.{number % 3}"],
            "sizeBytes": 40_000_000 + index * 1_234_567,
        }
        for index in range(48)
    ]  # fmt: skip
    timestamp = "2026-03-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "lastHeartbeatTime": timestamp,
         "lastTransitionTime": timestamp, "reason": f"Kubelet{kind}", "message": f"kubelet reports {kind}"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip
    labels = {
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m6i.2xlarge", "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": f"eu-west-1{'abc'[number % 3]}",
        **{f"team.example/label-{index}": f"value-{index}-{number % 5}" for index in range(12)},
    }  # fmt: skip
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi", "hugepages-2Mi": "0"}
    return {
        "metadata": {
            "name": name, "uid": f"00000000-0000-4000-8000-{number:012d}", "resourceVersion": str(1000 + number),
            "creationTimestamp": timestamp, "labels": labels,
            "annotations": {f"node.example/annotation-{index}": "x" * 120 for index in range(8)},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": f"cloud:///{name}"},
        "status": {
            "capacity": capacity, "allocatable": capacity, "conditions": conditions, "images": images,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"machineID": f"{number:032x}", "systemUUID": f"{number:032x}", "bootID": f"{number:032x}",
                         "kernelVersion": "6.8.0", "osImage": "Linux", "containerRuntimeVersion": "containerd://2.1.0",
                         "kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }  # fmt: skip


def make_pod(number: int) -> bytes:
    """Return the JSON of a pod of a deployment; pods differ only by name and uid."""
    account = {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    container = {
        "name": "web", "image": "registry.example/team-1/service-1:v1.1.0", "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}, "volumeMounts": [account],
        "env": [{"name": f"SETTING_{index}", "value": f"value of {index}"} for index in range(10)],
    }  # fmt: skip
    pod = {
        "metadata": {"name": f"web-{number}", "namespace": "shop", "uid": f"pod-{number}", "labels": {"app": "web"}},
        "spec": {
            "containers": [container], "volumes": [{"name": "token", "projected": {"sources": []}}],
            "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": True,
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }  # fmt: skip
    return json.dumps(pod, separators=(",", ":")).encode()


def encode(value: Any) -> bytes:
    """Encode a value in the JSON format of Go."""
    return json.dumps(value, separators=(",", ":")).encode()


class VerbClient:
    """A connection to the server, and the CPU time of the server."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self._pid = port, pid
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._response_stream = self._socket.makefile("rb", 1 << 20)

    def send(self, verb: str, *parts: bytes) -> tuple[float, int]:
        """Send a request; return the seconds until the end of the response, and its size."""
        size = sum(map(len, parts))
        head = f"POST /{verb} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        started = time.perf_counter()
        self._socket.sendall(head.encode() + parts[0])
        for part in parts[1:]:
            self._socket.sendall(part)
        status, length = self._response_stream.readline(), 0
        while (line := self._response_stream.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        answer = self._response_stream.read(length)
        seconds = time.perf_counter() - started
        if b" 200 " not in status or b'"Error":""' not in answer[-20:] + b'"Error":""' * (verb != "filter"):
            raise SystemExit(f"{verb}: {status!r} {answer[:300]!r}")
        return seconds, length

    def server_cpu_seconds(self) -> tuple[float, float]:
        """Return user and system CPU seconds of the server."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) / TICKS, int(fields[12]) / TICKS


def percentile(times: list[float], percent: int) -> float:
    """Return a percentile in milliseconds."""
    return round(quantiles(times, n=100, method="inclusive")[percent - 1] * 1000, 2)


def measure(client: VerbClient, case: str, count: int, body_of: Callable[[int], tuple[bytes, ...]]) -> None:
    """Send requests for *count* pods and print a line for each verb."""
    for number in range(max(3, count // 10)):  # fill the caches
        for verb in ("filter", "prioritize"):
            client.send(verb, *body_of(-number))
    times: dict[str, list[float]] = {"filter": [], "prioritize": []}
    cpu_seconds = dict.fromkeys(times, (0.0, 0.0))
    sizes = dict.fromkeys(times, 0)
    for verb, found in times.items():
        before = client.server_cpu_seconds()
        for number in range(count):
            seconds, sizes[verb] = client.send(verb, *body_of(number))
            found.append(seconds)
        after = client.server_cpu_seconds()
        cpu_seconds[verb] = (after[0] - before[0], after[1] - before[1])
    for verb, found in times.items():
        line = {
            "benchmark": "verbs", "case": case, "verb": verb, "requests": count,
            "p50_ms": round(median(found) * 1000, 2), "p99_ms": percentile(found, 99),
            "user_ms": round(cpu_seconds[verb][0] / count * 1000, 2),
            "system_ms": round(cpu_seconds[verb][1] / count * 1000, 2),
            "request_kb": sum(map(len, body_of(0))) // 1024,
            "answer_kb": sizes[verb] // 1024, "python": platform.python_version(),
        }  # fmt: skip
        print(json.dumps(line), flush=True)


@contextmanager
def open_slow_connections(port: int, count: int) -> Iterator[None]:
    """Open connections with incomplete requests: half end in the head, half in the body."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 100)), hard))
    body = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"
    with ExitStack() as stack:
        for number in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(body if number % 2 else b"POST /filter HTTP/1.1\r\nHost: x\r\nX-")
        yield


@contextmanager
def run_server(nodes: list[bytes], filter_answer: str) -> Iterator[VerbClient]:
    """Run `extender serve` with *nodes* and a value of its flag; yield a client."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        items = b",".join(b'{"apiVersion":"v1","kind":"Node",' + node[1:] for node in nodes)
        file.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}")
        command = [sys.executable, "-m", "extender", "serve", "-f", str(file), "--port", "0",
                   f"--filter-answer={filter_answer}"]  # fmt: skip
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        try:
            found = None
            while found is None:
                line = server.stderr.readline()
                if not line:
                    raise SystemExit("extender serve ended")
                found = re.search(r"127\.0\.0\.1:(\d+)", line)
            # Read its log, or it blocks when the pipe is full.
            Thread(target=server.stderr.read, daemon=True).start()
            yield VerbClient(int(found[1]), server.pid)
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Parse the command line and run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--requests", type=int, default=300, help="requests with node names (300)")
    parser.add_argument("--whole", type=int, default=20, help="requests with whole nodes (20)")
    parser.add_argument("--slow", type=int, default=1000, help="slow clients (1,000)")
    parser.add_argument("--filter-answer", choices=("feasible", "best"), default="feasible")
    args = parser.parse_args()
    cases = check_names(parser, "case", args.cases, CASES) or CASES
    nodes = [encode(make_node(number)) for number in range(NODES)]

    sequence = [node_name(number) for number in range(NODES)]
    Random(1).shuffle(sequence)  # as the map of kube-scheduler's informer

    def by_rotating_names(number: int, mixed_interval: int = 8) -> tuple[bytes, ...]:
        start = number * 503 % NODES
        names = [sequence[position % NODES] for position in range(start, start + 500)]
        if number % mixed_interval == 0:
            names[::2], names[1::2] = names[:250], names[250:]
        return (b'{"Pod":' + make_pod(number) + b',"Nodes":null,"NodeNames":' + encode(names) + b"}",)

    def by_names(count: int) -> Callable[[int], tuple[bytes, ...]]:
        body_end = b',"Nodes":null,"NodeNames":' + encode([node_name(number) for number in range(count)]) + b"}"
        return lambda number: (b'{"Pod":' + make_pod(number) + body_end,)

    with run_server(nodes, args.filter_answer) as client:
        if "500-names" in cases:
            measure(client, "500-names", args.requests, by_names(500))
        if "500-rotating" in cases:
            measure(client, "500-rotating", args.requests, by_rotating_names)
        if "500-mixed" in cases:
            measure(client, "500-mixed", args.requests, lambda number: by_rotating_names(number, mixed_interval=1))
        if "5000-names" in cases:
            measure(client, "5000-names", args.requests, by_names(NODES))
        if "5000-nodes" in cases:
            body_end = b',"Nodes":{"metadata":{},"items":[' + b",".join(nodes) + b']},"NodeNames":null}'
            measure(client, "5000-nodes", args.whole, lambda number: (b'{"Pod":' + make_pod(number), body_end))
        if "slow" in cases:
            measure(client, "500-names", args.requests, by_names(500))
            with open_slow_connections(client.port, args.slow):
                measure(client, f"500-names with {args.slow} slow clients", args.requests, by_names(500))


if __name__ == "__main__":
    main()
