"""The map of the nodes while it is read again, in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.ui.conftest import OpenPage
from tests.ui.live_scheduler import READER_OPTIONS, LiveScheduler, make_node, run_live_scheduler
from tests.ui.sent_events import HeldAnswers


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveScheduler]:
    """One node without pods."""
    with run_live_scheduler(tmp_path_factory.mktemp("scheduler"), make_node("n1")) as running:
        yield running


@pytest.fixture(scope="module")
def url(scheduler: LiveScheduler) -> str:
    """The address of the first page of the scheduler, instead of that of the demo's recording."""
    return scheduler.url


def test_a_node_that_is_selected_while_the_cluster_is_read_again_stays_selected(
    open_page: OpenPage, scheduler: LiveScheduler
) -> None:
    page = open_page(**READER_OPTIONS)
    expect(page.get_by_role("heading", level=1)).to_have_text("1 node")  # the first document may be older
    expect(page.locator("#connection")).to_have_text("Live.")
    held = HeldAnswers(page, "**/data/cluster", times=1)
    scheduler.create(make_node("n0"))
    answer = held.take()
    page.locator("#cells").focus()
    page.keyboard.press("Home")
    expect(page.locator("#selected a")).to_have_text("n1")
    answer.continue_()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 nodes")
    expect(page.locator("#selected a")).to_have_text("n1")
