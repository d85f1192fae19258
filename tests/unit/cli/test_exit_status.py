"""The exit status with `--exit-code`: 0 fits, 3 waits, 4 error."""

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}\n"
POD = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\n"
POD += "spec: {containers: [{name: a, resources: {requests: {cpu: CPU}}}]}\n"
FITS = POD.replace("NAME", "fits").replace("CPU", "1")
WAITS = POD.replace("NAME", "waits").replace("CPU", "3")


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "c.yaml"
    path.write_text(NODE + FITS + WAITS)
    return str(path)


@pytest.mark.parametrize(("name", "status"), [("fits", 0), ("waits", 3)])
def test_explain_exits_with_the_outcome(extender: Command, cluster: str, name: str, status: int) -> None:
    assert extender("explain", "-f", cluster, name, "--exit-code")[0] == status
    assert extender("explain", "-f", cluster, name)[0] == 0


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_one_pod_that_waits_is_enough(extender: Command, cluster: str, command: str) -> None:
    assert extender(command, "-f", cluster, "--exit-code")[0] == 3
    assert extender(command, "-f", cluster)[0] == 0


@pytest.mark.parametrize("command", ["explain", "simulate"])
def test_without_pods_that_wait_the_status_is_0(extender: Command, command: str) -> None:
    assert extender(command, "-f", "-", "--exit-code", stdin=NODE + FITS)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "-f", "gone.yaml", "--exit-code"),
        ("explain", "--exit-code", "--no-such-flag"),
        ("simulate", "-f", "gone.yaml", "--exit-code"),
    ],
)
def test_an_error_is_4(extender: Command, arguments: tuple[str, ...]) -> None:
    status, out, err = extender(*arguments)
    assert (status, out) == (4, "")
    assert err
    assert extender(*(argument for argument in arguments if argument != "--exit-code"))[0] == 2
