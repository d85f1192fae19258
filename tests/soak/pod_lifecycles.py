"""A soak: pods are created, bound by `extender schedule` and deleted at a fixed rate on a real control plane.

    python tests/soak/pod_lifecycles.py [--seconds 3600] [--rate 100] [--nodes 100] [--interval 10]

The scheduler's resident memory, file descriptors, tasks and event loop lag are sampled every `--interval` seconds.
`rss_mb_per_hour` is the slope of the memory by least squares, after ten minutes or a sixth of the run. Prints one JSON
line. The exit status is 1 if a pod was not bound and deleted, if the slope exceeds `--max-slope`, or if the file
descriptors or tasks grew by more than `--max-growth`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.harness import BulkClient, cpu_seconds, open_bulk_client
from tests.bench.workloads import node_body
from tests.controlplane import programs
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.scheduler_processes import make_configuration
from tests.soak.samples import Sample, percentile, read_sample, summarize

NAMESPACE: Final = "soak"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
PODS_PER_JOB: Final = 10

_DRAIN_SECONDS: Final = 120.0
_API_SERVER_FLAGS: Final = (
    "--storage-media-type=application/vnd.kubernetes.protobuf",
    "--audit-policy-file=",
    "--audit-log-path=",
    "--etcd-compaction-interval=1m",
    "--event-ttl=1m",
)
"""Flags that keep the data of the control plane small."""


class _Object(msgspec.Struct):
    """The fields of a pod that the soak reads."""

    metadata: dict[str, Any]
    spec: dict[str, Any]


class _WatchEvent(msgspec.Struct):
    """A watch event."""

    type: str
    object: _Object


def make_pod(number: int) -> dict[str, Any]:
    """Make a small pod. Ten pods share the labels of a job, as real pods do."""
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    job = number // PODS_PER_JOB
    labels = {"app": f"app-{job % 7}", "job": f"job-{job}"}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"metadata": {"name": f"pod-{number}", "labels": labels}, "spec": spec}


class PodLifecycles:
    """Creates pods at a fixed rate, and deletes each one when it is bound.

    Attributes:
        created: the number of created pods.
        deleted: the number of deleted pods.
        latencies: the seconds from the start of the creation of a pod until its binding was watched.
    """

    def __init__(self, client: BulkClient) -> None:
        self.created = self.deleted = 0
        self.latencies: list[float] = []
        self._client = client
        self._start_times: dict[str, float] = {}
        self._writes = set[asyncio.Task[None]]()
        self._loop = asyncio.get_running_loop()

    @property
    def remaining(self) -> int:
        """The number of pods that are not bound or not deleted yet."""
        return len(self._start_times) + len(self._writes)

    async def run(self, seconds: float, rate: float) -> None:
        """Create *rate* pods per second for *seconds*, then wait until the last one is deleted."""
        start, number = self._loop.time(), 0
        while (elapsed := self._loop.time() - start) < seconds:
            while number < elapsed * rate and len(self._writes) < rate:  # a slow server gets fewer pods
                self._start_times[f"pod-{number}"] = self._loop.time()
                self._write(self._create(number))
                number += 1
            await asyncio.sleep(min(0.05, 1 / rate))
        deadline = self._loop.time() + _DRAIN_SECONDS
        while self.remaining and self._loop.time() < deadline:
            await asyncio.sleep(0.1)

    async def watch(self) -> None:
        """Delete each pod that is bound, until cancelled."""
        while True:
            page = await self._client.call("GET", PODS_PATH)
            for pod in page["items"]:
                self._on_pod(pod["metadata"]["name"], pod["spec"])
            with suppress(aiohttp.ClientError):  # the server ends a watch after some minutes
                async with self._client.watch(PODS_PATH, page["metadata"]["resourceVersion"]) as lines:
                    async for line in lines:
                        event = msgspec.json.decode(line, type=_WatchEvent)
                        if event.type == "MODIFIED":
                            self._on_pod(event.object.metadata["name"], event.object.spec)

    def _on_pod(self, name: str, spec: dict[str, Any]) -> None:
        if spec.get("nodeName") and (start_time := self._start_times.pop(name, None)) is not None:
            self.latencies.append(self._loop.time() - start_time)
            self._write(self._delete(name))

    async def _create(self, number: int) -> None:
        await self._client.call("POST", PODS_PATH, make_pod(number))
        self.created += 1

    async def _delete(self, name: str) -> None:
        await self._client.call("DELETE", f"{PODS_PATH}/{name}?gracePeriodSeconds=0")
        self.deleted += 1

    def _write(self, request: Any) -> None:
        task = asyncio.create_task(request)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)


async def take_samples(
    process: Process, probe_file: Path, samples: list[Sample], interval: float, record: Path | None
) -> None:
    """Append a sample per line of the probe to *samples*, and as a JSON line to *record*, until cancelled."""
    loop, lines = asyncio.get_running_loop(), 0
    start = loop.time()
    while True:
        await asyncio.sleep(interval / 10)
        process.pause(0.001)  # raises if the process has ended
        text = probe_file.read_text().splitlines() if probe_file.exists() else []
        if len(text) > lines:
            lines = len(text)
            samples.append(read_sample(process.pid, loop.time() - start, json.loads(text[-1])))
            if record is not None:
                with record.open("a") as stream:
                    stream.write(json.dumps(asdict(samples[-1])) + "\n")


def start_scheduler(plane: ControlPlane, probe_file: Path, interval: float) -> Process:
    """Start `extender schedule` with the probe."""
    file = plane.folder / "soak.json"
    file.write_text(json.dumps(make_configuration(plane, rate=5000)))
    script = str(Path(__file__).with_name("measured_scheduler.py"))
    command = programs.make_extender_command("schedule", f"--config={file}", "--secure-port=0")
    flags = command[command.index("schedule") + 1 :]
    return plane.start_program([sys.executable, script, str(probe_file), str(interval), *flags], "extender")


@asynccontextmanager
async def run_in_background(*coroutines: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run coroutines until the block ends; cancel them, and raise the error of one that ended before."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def soak(plane: ControlPlane, args: argparse.Namespace) -> dict[str, Any]:
    """Run the soak on a control plane without objects, and return its figures."""
    samples: list[Sample] = []
    probe_file = plane.folder / "probe.jsonl"
    async with open_bulk_client(plane) as client:
        await client.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await client.create_nodes(args.nodes, node_body)
        process = start_scheduler(plane, probe_file, args.interval)
        await asyncio.to_thread(process.wait_for_output, "is synced", 300)
        lifecycles = PodLifecycles(client)
        cpu_start = cpu_seconds(process.pid)
        async with run_in_background(
            lifecycles.watch(), take_samples(process, probe_file, samples, args.interval, args.record)
        ) as tasks:
            load = asyncio.create_task(lifecycles.run(args.seconds, args.rate))
            await asyncio.wait([load, *tasks], return_when=asyncio.FIRST_COMPLETED)
        cpu = cpu_seconds(process.pid) - cpu_start
        plane.stop_program(process)
    return {
        "benchmark": "soak", "seconds": args.seconds, "rate": args.rate, "nodes": args.nodes,
        "created": lifecycles.created, "deleted": lifecycles.deleted, "unbound": lifecycles.remaining,
        "bind_p50_ms": round(percentile(lifecycles.latencies, 0.5) * 1000, 1),
        "bind_p99_ms": round(percentile(lifecycles.latencies, 0.99) * 1000, 1),
        "cpu_ms_per_pod": round(cpu * 1000 / max(1, lifecycles.deleted), 2),
        **summarize(samples, args.seconds),
    }  # fmt: skip


def find_failures(line: dict[str, Any], max_slope: float, max_growth: int) -> list[str]:
    """Return what a result breaks: one sentence each."""
    failures = []
    if line["unbound"] or line["deleted"] != line["created"] or not line["created"]:
        failures.append(f"{line['unbound']} pods were not bound and deleted; {line['deleted']} were")
    if line["rss_mb_per_hour"] > max_slope:
        failures.append(f"the memory grew by {line['rss_mb_per_hour']} MB an hour; the limit is {max_slope}")
    for name, start, end in (("file descriptors", "fds_start", "fds_end"), ("tasks", "tasks_start", "tasks_end")):
        if line[end] - line[start] > max_growth:
            failures.append(f"the {name} grew from {line[start]} to {line[end]}; the limit is {max_growth} more")
    return failures


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="the duration of the load (3600)")
    parser.add_argument("--rate", type=float, default=100, help="pods per second (100)")
    parser.add_argument("--nodes", type=int, default=100, help="nodes (100)")
    parser.add_argument("--interval", type=float, default=10, help="seconds between two samples (10)")
    parser.add_argument("--max-slope", type=float, default=1.0, help="limit of the growth of memory in MB an hour (1)")
    parser.add_argument("--max-growth", type=int, default=20, help="limit of the growth of descriptors and tasks (20)")
    parser.add_argument("--folder", default=None, help="where the temporary data are (the system's folder)")
    parser.add_argument("--record", type=Path, default=None, help="a file to which each sample is appended as JSON")
    return parser.parse_args(arguments)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Start a control plane, run the soak, and return its figures."""
    found = programs.find()
    if isinstance(found, str):
        raise SystemExit(found)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=args.folder) as folder:
        plane = ControlPlane(found, Path(folder), *_API_SERVER_FLAGS)
        try:
            plane.start()
            return asyncio.run(soak(plane, args))
        finally:
            plane.stop()


def main() -> int:
    """Run the soak, print its line, and return the exit status."""
    args = parse_arguments()
    line = run(args)
    print(json.dumps(line), flush=True)
    failures = find_failures(line, args.max_slope, args.max_growth)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
