"""How long filter and prioritize take over HTTP: one JSON line a verb, form and number of nodes.

    python tests/bench/verbs.py [--requests 300] [--whole 20] [--slow 1000] [CASE ...]

`extender serve` answers in a process of its own, about 5,000 nodes as large as real ones; each pod is asked about as
kube-scheduler does it, filter and then prioritize, one request after another on one connection. `user_ms` and
`system_ms` are what the server spends on a request. The case `slow` has 1,000 callers beside it that never finish a
head or a body.
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
from statistics import median, quantiles
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.named import all_known

NODES = 5000
CASES = ("500-names", "5000-names", "5000-nodes", "slow")
TICKS = os.sysconf("SC_CLK_TCK")


def a_name(number: int) -> str:
    """As long as those of a cloud."""
    return f"ip-10-{number // 250}-{number % 250}-7.eu-west-1.internal"


def a_node(number: int) -> dict[str, Any]:
    """A node as kubelet and its helpers write it: 13 kB of JSON, most of it images."""
    name = a_name(number)
    images = [
        {
            "names": [f"registry.example/team-{each % 7}/service-{each}@sha256:{each * 7919 + number % 3:064x}",
                      f"registry.example/team-{each % 7}/service-{each}:v1.{each}.{number % 3}"],
            "sizeBytes": 40_000_000 + each * 1_234_567,
        }
        for each in range(48)
    ]  # fmt: skip
    moment = "2026-03-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "lastHeartbeatTime": moment,
         "lastTransitionTime": moment, "reason": f"Kubelet{kind}", "message": f"kubelet reports {kind}"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip
    labels = {
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m6i.2xlarge", "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": f"eu-west-1{'abc'[number % 3]}",
        **{f"team.example/label-{each}": f"value-{each}-{number % 5}" for each in range(12)},
    }  # fmt: skip
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi", "hugepages-2Mi": "0"}
    return {
        "metadata": {
            "name": name, "uid": f"00000000-0000-4000-8000-{number:012d}", "resourceVersion": str(1000 + number),
            "creationTimestamp": moment, "labels": labels,
            "annotations": {f"node.example/annotation-{each}": "x" * 120 for each in range(8)},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": f"cloud:///{name}"},
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"machineID": f"{number:032x}", "systemUUID": f"{number:032x}", "bootID": f"{number:032x}",
                         "kernelVersion": "6.8.0", "osImage": "Linux", "containerRuntimeVersion": "containerd://2.1.0",
                         "kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }  # fmt: skip


def a_pod(number: int) -> bytes:
    """A pod of a deployment as a scheduler sends it; all are alike but for their names."""
    account = {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    container = {
        "name": "web", "image": "registry.example/team-1/service-1:v1.1.0", "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}, "volumeMounts": [account],
        "env": [{"name": f"SETTING_{each}", "value": f"value of {each}"} for each in range(10)],
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


def compact(thing: Any) -> bytes:
    """As Go writes JSON."""
    return json.dumps(thing, separators=(",", ":")).encode()


class Caller:
    """One connection to the server, and what the server spends."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self._pid = port, pid
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb", 1 << 20)

    def ask(self, verb: str, *pieces: bytes) -> tuple[float, int]:
        """Seconds until the whole answer is there, and its size."""
        size = sum(map(len, pieces))
        head = f"POST /{verb} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        began = time.perf_counter()
        self._socket.sendall(head.encode() + pieces[0])
        for piece in pieces[1:]:
            self._socket.sendall(piece)
        status, length = self._answers.readline(), 0
        while (line := self._answers.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        answer = self._answers.read(length)
        seconds = time.perf_counter() - began
        if b" 200 " not in status or b'"Error":""' not in answer[-20:] + b'"Error":""' * (verb != "filter"):
            raise SystemExit(f"{verb}: {status!r} {answer[:300]!r}")
        return seconds, length

    def spent(self) -> tuple[float, float]:
        """Seconds of processor time the server has used: in its own code, and in the kernel."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) / TICKS, int(fields[12]) / TICKS


def percentile(times: list[float], percent: int) -> float:
    """In milliseconds."""
    return round(quantiles(times, n=100, method="inclusive")[percent - 1] * 1000, 2)


def measure(caller: Caller, case: str, count: int, body_of: Callable[[int], tuple[bytes, ...]]) -> None:
    """Ask about *count* pods and print a line for each verb."""
    for number in range(max(3, count // 10)):  # until everything is warm
        for verb in ("filter", "prioritize"):
            caller.ask(verb, *body_of(-number))
    times: dict[str, list[float]] = {"filter": [], "prioritize": []}
    spent = dict.fromkeys(times, (0.0, 0.0))
    sizes = dict.fromkeys(times, 0)
    for verb, found in times.items():
        before = caller.spent()
        for number in range(count):
            seconds, sizes[verb] = caller.ask(verb, *body_of(number))
            found.append(seconds)
        after = caller.spent()
        spent[verb] = (after[0] - before[0], after[1] - before[1])
    for verb, found in times.items():
        line = {
            "benchmark": "verbs", "case": case, "verb": verb, "requests": count,
            "p50_ms": round(median(found) * 1000, 2), "p99_ms": percentile(found, 99),
            "user_ms": round(spent[verb][0] / count * 1000, 2), "system_ms": round(spent[verb][1] / count * 1000, 2),
            "request_kb": sum(map(len, body_of(0))) // 1024,
            "answer_kb": sizes[verb] // 1024, "python": platform.python_version(),
        }  # fmt: skip
        print(json.dumps(line), flush=True)


@contextmanager
def slow_callers(port: int, count: int) -> Iterator[None]:
    """Half of them never finish their head, half never their body; each sends a byte now and then meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 100)), hard))
    body = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"
    with ExitStack() as stack:
        for number in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(body if number % 2 else b"POST /filter HTTP/1.1\r\nHost: x\r\nX-")
        yield


@contextmanager
def serving(nodes: list[bytes]) -> Iterator[Caller]:
    """`extender serve` about *nodes*."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        items = b",".join(b'{"apiVersion":"v1","kind":"Node",' + node[1:] for node in nodes)
        file.write_bytes(b'{"apiVersion":"v1","kind":"List","items":[' + items + b"]}")
        command = [sys.executable, "-m", "extender", "serve", "-f", str(file), "--port", "0"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        try:
            found = None
            while found is None:
                line = server.stderr.readline()
                if not line:
                    raise SystemExit("extender serve ended")
                found = re.search(r"127\.0\.0\.1:(\d+)", line)
            # What it logs has to be read, or it waits for that some day.
            Thread(target=server.stderr.read, daemon=True).start()
            yield Caller(int(found[1]), server.pid)
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--requests", type=int, default=300, help="pods asked about with names (300)")
    parser.add_argument("--whole", type=int, default=20, help="pods asked about with whole nodes (20)")
    parser.add_argument("--slow", type=int, default=1000, help="slow callers (1,000)")
    args = parser.parse_args()
    wanted = all_known(parser, "case", args.cases, CASES) or CASES
    nodes = [compact(a_node(number)) for number in range(NODES)]

    def by_names(count: int) -> Callable[[int], tuple[bytes, ...]]:
        rest = b',"Nodes":null,"NodeNames":' + compact([a_name(number) for number in range(count)]) + b"}"
        return lambda number: (b'{"Pod":' + a_pod(number) + rest,)

    with serving(nodes) as caller:
        if "500-names" in wanted:
            measure(caller, "500-names", args.requests, by_names(500))
        if "5000-names" in wanted:
            measure(caller, "5000-names", args.requests, by_names(NODES))
        if "5000-nodes" in wanted:
            rest = b',"Nodes":{"metadata":{},"items":[' + b",".join(nodes) + b']},"NodeNames":null}'
            measure(caller, "5000-nodes", args.whole, lambda number: (b'{"Pod":' + a_pod(number), rest))
        if "slow" in wanted:
            measure(caller, "500-names", args.requests, by_names(500))
            with slow_callers(caller.port, args.slow):
                measure(caller, f"500-names beside {args.slow} slow callers", args.requests, by_names(500))


if __name__ == "__main__":
    main()
