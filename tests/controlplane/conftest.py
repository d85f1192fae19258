"""A real control plane: started once, emptied after each test; its logs stay after a failure."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.controlplane import programs
from tests.controlplane.api_client import ApiClient, ApiStatusError
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.history_recorder import LEASE_PATH, HistoryRecorder
from tests.controlplane.scheduler_processes import make_nodes

FOLDER = Path(__file__).parent

UNCLOSED_SOCKET_FILTER = pytest.mark.filterwarnings(r"ignore:unclosed <ssl\.SSLSocket:ResourceWarning")
"""A server that is killed resets connections. `SSLSocket._create` of CPython 3.11 then does not close the socket."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.controlplane)
            item.add_marker(UNCLOSED_SOCKET_FILTER)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Run etcd and kube-apiserver."""
    with running_control_plane(tmp_path_factory.mktemp("control-plane"), request.session) as plane:
        yield plane


@contextmanager
def running_control_plane(folder: Path, session: pytest.Session, *flags: str) -> Iterator[ControlPlane]:
    """Run etcd and kube-apiserver with these flags."""
    found_programs = programs.find()
    if isinstance(found_programs, str):
        # `.ci/run` and `make test-control-plane` require it.
        (pytest.fail if os.environ.get("CONTROL_PLANE") == "required" else pytest.skip)(found_programs)
    plane = ControlPlane(found_programs, folder, *flags)
    failure_count = session.testsfailed
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
        if session.testsfailed > failure_count:
            shutil.rmtree(plane.folder / "etcd", ignore_errors=True)
            print(f"\nlogs of the control plane: {plane.folder}")  # noqa: T201 - helps to debug the failure
        else:
            shutil.rmtree(plane.folder, ignore_errors=True)


@pytest.fixture
def api(control_plane: ControlPlane) -> Iterator[ApiClient]:
    """Return a client of the administrator. Its objects and the programs of the test are removed after the test."""
    with control_plane.client() as client:
        yield client
        control_plane.stop_other_programs()
        client.delete_created()


@pytest.fixture
def recorder(control_plane: ControlPlane, api: ApiClient) -> HistoryRecorder:
    """Create twenty nodes, delete the lease, and record all states."""
    recorder = HistoryRecorder(control_plane)
    with suppress(ApiStatusError):
        api.call("DELETE", LEASE_PATH)
    for node in make_nodes(20):
        api.create(node)
    return recorder
