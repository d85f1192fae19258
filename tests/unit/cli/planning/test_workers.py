"""Tasks in this process, in others and on any executor: their order, and how many are submitted at once."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import typer
from distributed import LocalCluster

from extender.cli.planning.workers import Workers, run_tasks, run_with_executor
from tests.unit.planning.clusters import as_list, budget, node, pod


def square(number: int) -> int:
    return number * number


def kill_this_process(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("jobs", [1, 2], ids=["this process", "two processes"])
def test_results_have_the_order_of_the_tasks(jobs: int) -> None:
    assert list(run_tasks(Workers(jobs), square, range(20))) == [number * number for number in range(20)]


def test_no_thread_of_the_executor_outlives_the_tasks() -> None:
    """A thread that ended while the interpreter did raised "OSError: Bad file descriptor" at the end of a command."""
    threads = threading.enumerate()
    assert list(run_tasks(Workers(2), square, range(4))) == [0, 1, 4, 9]
    assert threading.enumerate() == threads


def test_any_executor_can_run_tasks() -> None:
    with ThreadPoolExecutor(3) as executor:
        assert list(run_with_executor(executor, 3, square, range(20))) == [number * number for number in range(20)]


def test_at_most_three_tasks_for_each_job_are_submitted() -> None:
    taken: list[int] = []

    class Immediate(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]  # an executor without threads
            future: Future[int] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    def iterate_tasks() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    with Immediate() as executor:
        results = run_with_executor(executor, 2, square, iterate_tasks())
        assert next(results) == 0
        assert len(taken) == 6


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (Workers(-1), "-1; want 0 to 1024"),
        (Workers(1025), "1025; want 0 to 1024"),
        (Workers(2, "tcp://a:1"), "contradicts --jobs; the workers of Dask run the runs"),
    ],
)
def test_invalid_workers_are_an_error(workers: Workers, message: str) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        workers.validate("runs")
    assert str(caught.value) == message


def test_no_jobs_means_one_for_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert (Workers(0).process_count, Workers(0).runs_in_this_process) == (6, False)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert Workers(0).runs_in_this_process
    assert not Workers(1, "tcp://a:1").runs_in_this_process


def test_a_killed_process_is_an_error_that_names_the_flag() -> None:
    with pytest.raises(ChildProcessError) as caught:
        list(run_tasks(Workers(2), kill_this_process, range(4)))
    assert str(caught.value) == "a process of --jobs was killed; if the memory was full, use fewer jobs"


SLEEPING_PROGRAM = """
import os
import time
from extender.cli.planning.workers import Workers, run_tasks

def wait(number):
    os.write(1, b"started\\n")  # one write, also with PYTHONUNBUFFERED: both processes have the same pipe
    time.sleep(600)

list(run_tasks(Workers(2), wait, [1, 2]))
"""


def test_the_processes_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEPING_PROGRAM], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        try:
            assert [parent.stdout.readline(), parent.stdout.readline()] == [b"started\n", b"started\n"]
        finally:
            parent.kill()
        parent.wait()
        readable, _, _ = select.select([parent.stdout], [], [], 60)  # the processes have the other end of the pipe
        assert readable, "the processes still run"
        assert parent.stdout.read() == b""


Run = Callable[..., tuple[int, str, str]]

HEAD = "Error: Invalid value for --scheduler-address: "


def last_line(err: str) -> str:
    return err.splitlines()[-1]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    nodes = [node(f"n{number}", "4") for number in range(30)]
    pods = [pod(f"p{number}", "1500m", on=f"n{number}") for number in range(30)]
    (tmp_path / "c.json").write_text(as_list([*nodes, *pods, budget("other", {"app": "other"}, 0)]))
    (tmp_path / "s.yaml").write_text('scenarios: [{drain: "*"}]')
    return ("what-if", "-f", str(tmp_path / "c.json"), "--sweep", str(tmp_path / "s.yaml"), "-o", "json")


def test_the_workers_of_dask_give_the_results_of_one_process(
    extender: Run, files: tuple[str, ...], address: str
) -> None:
    status, out, err = extender(*files, "--scheduler-address", address)
    assert (status, err, out.count("\n")) == (0, "", 30)
    assert out == extender(*files)[1]


def test_an_address_without_a_scheduler_is_one_line(
    extender: Run, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.cli.planning.workers._CONNECT_TIMEOUT_SECONDS", 0.2)
    status, out, err = extender(*files, "--scheduler-address", "tcp://127.0.0.1:1")
    assert (status, out) == (2, "")
    assert last_line(err).startswith(f"{HEAD}no Dask scheduler answers at tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["foo", "10.0.0.7:8786", "tcp://host", "tcp://host:port"])
def test_an_invalid_address_is_one_line(extender: Run, files: tuple[str, ...], address: str) -> None:
    status, out, err = extender(*files, "--scheduler-address", address)
    assert (status, out) == (2, "")
    assert last_line(err) == (
        f"{HEAD}'{address}' is no address of a Dask scheduler; want one such as tcp://10.0.0.7:8786"
    )


def test_a_scheduler_without_workers_is_one_line(extender: Run, files: tuple[str, ...]) -> None:
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        status, _, err = extender(*files, "--scheduler-address", cluster.scheduler_address)
    assert (status, last_line(err).rpartition(" has ")[2]) == (2, "no worker")


def test_without_the_package_the_command_that_installs_it_is_named(
    extender: Run, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = extender(*files, "--scheduler-address", "tcp://127.0.0.1:1")
    package = "'kube-scheduler-extender[dask]'"
    assert status == 2
    assert last_line(err) == f"{HEAD}needs the package distributed; install it with pip install {package}"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ("--sweep", "s.yaml", "--jobs", "2", "--scheduler-address", "tcp://a:1"),
            "contradicts --jobs; the workers of Dask run the scenarios",
        ),
        (("--drain", "n1", "--scheduler-address", "tcp://a:1"), "needs --sweep FILE"),
    ],
    ids=["with jobs", "without a sweep"],
)
def test_flags_that_contradict_each_other_are_one_line(extender: Run, flags: tuple[str, ...], message: str) -> None:
    status, out, err = extender("what-if", "-f", "c.json", *flags)
    assert (status, out, last_line(err)) == (2, "", HEAD + message)
