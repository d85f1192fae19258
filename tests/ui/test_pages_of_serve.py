"""The pages of `extender serve --ui` for a recorded cluster."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.controlplane.process import Process, free_ports, is_listening
from tests.ui.conftest import DEMO, ROOT, OpenPage

SERVE = [sys.executable, "-m", "extender", "serve", "-f", str(ROOT / DEMO)]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the first page."""
    (port,) = free_ports(1)
    process = Process([*SERVE, "--ui", f"--port={port}"], tmp_path_factory.mktemp("serve") / "serve.log")
    deadline = time.monotonic() + 30.0
    while not is_listening(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/ui/"
    process.stop()


def test_the_pages_are_beside_the_verbs(open_page: OpenPage, url: str) -> None:
    page = open_page("waiting")
    page.get_by_role("link", name="shop/frontend-5d8c-k7wzd").click()
    expect(page.locator(".state")).to_contain_text("6 nodes would break its topology spread")
    expect(page.get_by_role("link", name="Queue")).to_have_count(0)
    with urllib.request.urlopen(f"{url.removesuffix('ui/')}livez") as response:  # noqa: S310  the address of the fixture
        assert response.read() == b"ok"


def test_a_host_name_of_another_site_gets_no_page(url: str) -> None:
    request = urllib.request.Request(url, headers={"Host": "rebound.example"})  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)  # noqa: S310
    assert raised.value.code == 421
    raised.value.close()


def test_the_pages_are_refused_beyond_loopback_without_authentication(tmp_path: Path) -> None:
    command = [*SERVE, "--ui", "--bind-address=0.0.0.0", "--anonymous-verbs"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert process.returncode == 2
    assert process.stderr.splitlines() == [
        "extender: --ui: every client of 0.0.0.0 could read the pages; want a loopback --bind-address"
    ]
