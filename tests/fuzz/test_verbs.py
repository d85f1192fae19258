"""Mutated requests to all four verbs of a running `extender serve`: no internal error, and bounded CPU and memory.

FUZZ sets the number of mutants and FUZZ_SEED the seed; `make fuzz` runs 100,000.
"""

import http.client
import os
from collections import Counter
from contextlib import closing
from heapq import nlargest
from pathlib import Path

import pytest

from tests.fuzz.mutants import make_mutants
from tests.fuzz.serve_process import ServeProcess

COUNT = int(os.environ.get("FUZZ", "3000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
MAX_CPU_SECONDS = 0.1
MAX_RSS_GROWTH = 1.10
_MIN_COUNT_FOR_GROWTH = 100_000
"""Number of mutants from which growth is checked. Three quarters of them fill the caches, which are bounded."""


class Client:
    """Sends requests over one connection, and measures their CPU time in the server."""

    def __init__(self, server: ServeProcess) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def post(self, path: str, body: bytes) -> tuple[int, bytes, float]:
        """Return the status and the text of the response, and the CPU time in seconds."""
        cpu_start = self._server.read_cpu_seconds()
        self._connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        text = response.read()
        return response.status, text, self._server.read_cpu_seconds() - cpu_start

    def measure_cpu_seconds(self, path: str, body: bytes) -> float:
        """Return the least CPU time of several equal requests, without work of the server that is not about them."""
        return min(self.post(path, body)[2] for _ in range(3))


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="CPU time of a thread is read from Linux's /proc")
def test_no_mutant_causes_an_internal_error_or_much_cpu_or_memory(serving: ServeProcess) -> None:
    statuses: Counter[int] = Counter()
    slow_requests: list[tuple[float, str, bytes]] = []
    rss_bytes = 0
    with closing(Client(serving)) as client:
        for number, (path, body) in enumerate(make_mutants(SEED, COUNT)):
            if number == COUNT * 3 // 4:
                rss_bytes = serving.read_rss_bytes()
            status, text, cpu_seconds = client.post(path, body)
            assert status < 500, (path, body, text)
            statuses[status] += 1
            slow_requests = nlargest(5, [*slow_requests, (cpu_seconds, path, body)])
        growth = serving.read_rss_bytes() / rss_bytes
        slowest = max(client.measure_cpu_seconds(path, body) for _, path, body in slow_requests)
    print(f"{COUNT} mutants: {dict(statuses)}, slowest {slowest:.3f} s of CPU, memory x{growth:.3f}")  # noqa: T201
    assert slowest < MAX_CPU_SECONDS, slow_requests
    assert COUNT < _MIN_COUNT_FOR_GROWTH or growth < MAX_RSS_GROWTH
