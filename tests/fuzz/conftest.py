"""The `extender serve` that the fuzz tests send requests to."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.controlplane.process import free_ports
from tests.flows.test_live_extender import CONFIG
from tests.fuzz.serve_process import START_SECONDS, ServeProcess, run_api_server


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[ServeProcess]:
    kubeconfig, config, port = tmp_path / "kubeconfig", tmp_path / "config.yaml", free_ports(1)[0]
    config.write_text(CONFIG)
    with run_api_server(kubeconfig):
        flags = [f"--kubeconfig={kubeconfig}", f"--config={config}", f"--port={port}"]
        with (
            (tmp_path / "log").open("wb") as log,
            subprocess.Popen([sys.executable, "-m", "extender", "serve", *flags], stderr=log) as process,
        ):
            served = ServeProcess(process, port)
            deadline = monotonic() + START_SECONDS
            try:
                while not served.is_ready():
                    assert process.poll() is None, (tmp_path / "log").read_text()
                    assert monotonic() < deadline, (tmp_path / "log").read_text()
                yield served
            finally:
                process.terminate()
