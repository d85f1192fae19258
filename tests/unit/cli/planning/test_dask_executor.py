"""A sweep on the workers of a Dask cluster, which runs in processes of its own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from tests.unit.planning.clusters import as_list, budget, node, pod

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
    monkeypatch.setattr("extender.cli.planning.dask_executor._CONNECT_TIMEOUT_SECONDS", 0.2)
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
