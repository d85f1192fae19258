"""`extender ui` without a file, on a real API server and in a real browser: its pages follow the cluster.

The user may only list and watch. The audit log shows what the command requests.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.controlplane.control_plane import EXTENDER, ControlPlane
from tests.controlplane.programs import make_extender_command
from tests.controlplane.scheduler_processes import create_all, make_nodes, make_pods
from tests.controlplane.view_only_role import (
    grant_view_only_role,
    list_requests,
    make_rules,
    replace_rules,
    run_audited_control_plane,
)
from tests.ui.conftest import browser as browser  # noqa: PLC0414  the fixture

PROBLEM: Final = "#problems .warning"
SECONDS: Final = 60_000
VERBS: Final = ("list", "watch")
RULES: Final = make_rules(without=("persistentvolumeclaims",), verbs=VERBS)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run a control plane that audits every request of our user, with a view-only role, two nodes and two pods."""
    with run_audited_control_plane(tmp_path_factory.mktemp("control-plane")) as plane:
        with plane.client() as api:
            grant_view_only_role(api, RULES)
            create_all(api, make_nodes(2))
            (large,) = make_pods("large", 1, cpu="64")
            (claim,) = make_pods("claim", 1)
            claim["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            create_all(api, [large, claim])
        yield plane


@contextmanager
def run_ui(plane: ControlPlane, stderr: Path) -> Iterator[str]:
    """Run `extender ui` for the live cluster inside the block, and return the address of the first page."""
    command = make_extender_command("ui", f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}")
    with (
        stderr.open("w") as errors,
        subprocess.Popen(
            [*command, "--port=0", "--no-browser"], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            match = re.fullmatch(r"The pages are at (\S+)\n", process.stdout.readline())
            assert match is not None, stderr.read_text()
            yield match.group(1)
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.fixture
def pages(browser: Browser) -> Iterator[list[Page]]:
    """Three pages in a browser. The test fails if a page has an error."""
    errors: list[str] = []
    context = browser.new_context()
    pages = [context.new_page() for _ in range(3)]
    for page in pages:
        page.on("pageerror", lambda error: errors.append(str(error)))
    yield pages
    context.close()
    assert errors == []


def expect_live(page: Page) -> None:
    expect(page.locator("#connection")).to_have_text("Live.", timeout=SECONDS)


def test_the_pages_follow_the_cluster_with_rights_to_list_and_watch_only(
    plane: ControlPlane, pages: list[Page], tmp_path: Path
) -> None:
    cluster, waiting, pod = pages
    with run_ui(plane, tmp_path / "errors") as url, plane.client() as api:
        cluster.goto(url)
        waiting.goto(f"{url}waiting")
        expect_live(cluster)
        expect_live(waiting)
        expect(cluster.get_by_role("heading", level=1)).to_have_text("2 nodes")
        create_all(api, [{**make_nodes(1)[0], "metadata": {"name": "added"}}, *make_pods("huge", 1, cpu="128")])
        expect(cluster.get_by_role("heading", level=1)).to_have_text("3 nodes", timeout=SECONDS)
        expect(waiting.get_by_role("link", name="default/huge-0")).to_be_visible(timeout=SECONDS)
        pod.goto(f"{url}pods/default/huge-0")
        expect(pod.locator(".state")).to_contain_text("fits on none of 3 nodes")
        api.call("DELETE", "/api/v1/namespaces/default/pods/huge-0?gracePeriodSeconds=0")
        api.call("DELETE", "/api/v1/nodes/added")
        expect(cluster.get_by_role("heading", level=1)).to_have_text("2 nodes", timeout=SECONDS)
        expect(waiting.get_by_role("link", name="default/huge-0")).to_have_count(0, timeout=SECONDS)
        pod.reload()
        expect(pod.get_by_role("heading", level=1)).not_to_have_text("Pod default/huge-0")
        pod.goto(f"{url}what-if?remove=node-0")
        expect(pod.locator("#command")).to_contain_text("--remove node-0")
        for page in (cluster, waiting):
            assert page.evaluate("performance.getEntriesByType('navigation').length") == 1
    assert {request.split()[0] for request in list_requests(plane)} == {"list", "watch"}


def test_a_missing_right_is_on_every_page_until_it_is_granted(
    plane: ControlPlane, pages: list[Page], tmp_path: Path
) -> None:
    cluster, waiting, pod = pages
    errors = tmp_path / "errors"
    line = re.compile(
        'not readable: persistentvolumeclaims; grant the verbs "list" and "watch" on persistentvolumeclaims'
    )
    with run_ui(plane, errors) as url, plane.client() as api:
        assert line.search(errors.read_text())
        assert errors.read_text().count("\n") == 1
        for page, path in ((cluster, ""), (waiting, "waiting"), (pod, "pods/default/claim-0")):
            page.goto(url + path)
            expect(page.locator(PROBLEM)).to_have_text(line)
        values: dict[str, Any] = pod.request.get(f"{url}data/pods/default/claim-0").json()
        assert values["pods"]["default/claim-0"]["notRecorded"] == ["persistentvolumeclaims"]
        expect_live(cluster)
        replace_rules(api, make_rules(verbs=VERBS))
        expect(cluster.locator(PROBLEM)).to_have_count(0, timeout=SECONDS)
        pod.reload()
        expect(pod.locator(".warning")).to_have_count(0)
        replace_rules(api, RULES)


def test_a_lost_connection_is_on_the_page_until_the_api_server_is_back(
    plane: ControlPlane, pages: list[Page], tmp_path: Path
) -> None:
    cluster = pages[0]
    with run_ui(plane, tmp_path / "errors") as url:
        cluster.goto(url)
        expect_live(cluster)
        plane.stop_api_server()
        lost = cluster.locator(PROBLEM).filter(has_text=re.compile("is lost, shown as of"))
        expect(lost.first).to_contain_text("other kinds", timeout=SECONDS)
        expect(cluster.get_by_role("heading", level=1)).to_have_text("2 nodes")
        plane.start_api_server()
        expect(lost).to_have_count(0, timeout=SECONDS)


def test_without_a_right_to_read_pods_the_command_ends_with_one_line(plane: ControlPlane) -> None:
    command = make_extender_command("ui", f"--kubeconfig={plane.write_kubeconfig(EXTENDER)}", "--no-browser")
    with plane.client() as api:
        replace_rules(api, make_rules(without=("pods",), verbs=VERBS))
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        replace_rules(api, RULES)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert 'grant the verbs "list" and "watch" on nodes and pods in all namespaces' in result.stderr
