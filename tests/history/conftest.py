"""A control plane for the histories, and the parameters of the runs from the environment."""

import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.controlplane.conftest import UNCLOSED_SOCKET_FILTER, running_control_plane
from tests.controlplane.control_plane import ControlPlane
from tests.history.faults import FAULTS

SHORT_FAULTS: Final = (
    "connection-reset",
    "unavailable",
    "lost-binding-response",
    "api-server-kill",
    "etcd-pause",
    "leader-pause",
)
"""The faults of `make test`: one run of each, which takes half a minute to a minute."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test with `fault` and `seed`: HISTORY_FAULTS names the faults, HISTORY_SEEDS counts the seeds."""
    if {"fault", "seed"} <= set(metafunc.fixturenames):
        default = "all" if "HISTORY_SEEDS" in os.environ else " ".join(SHORT_FAULTS)
        chosen = os.environ.get("HISTORY_FAULTS", default).replace(",", " ").split()
        unknown = set(chosen) - {"all", *FAULTS}
        assert not unknown, f"unknown faults {sorted(unknown)}; known are {', '.join(FAULTS)}"
        names = [name for name in metafunc.module.FAULT_NAMES if name in chosen or "all" in chosen]
        first = int(os.environ.get("HISTORY_FIRST_SEED", "2"))
        seeds = range(first, first + int(os.environ.get("HISTORY_SEEDS", "1")))
        metafunc.parametrize(("fault", "seed"), [(name, seed) for seed in seeds for name in names])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the control plane."""
    for item in items:
        if isinstance(item, pytest.Function) and "history_plane" in item.fixturenames:
            item.add_marker(pytest.mark.controlplane)
            item.add_marker(UNCLOSED_SOCKET_FILTER)
            # The programs are started while the threads of the observer and of the workload run.
            item.add_marker(pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"))


@pytest.fixture(scope="session")
def history_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run etcd and kube-apiserver for all histories of this process."""
    with running_control_plane(tmp_path_factory.mktemp("history"), request.session) as plane:
        yield plane
