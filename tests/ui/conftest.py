"""A real browser, Chromium, and the pages of the demo's recorded cluster in it.

The tests need chromium, chromium-browser or google-chrome in $PATH. Without one they are skipped; with the variable
CHROMIUM=required they fail.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
DEMO = "docs/examples/demo/cluster.yaml"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

OpenPage = Callable[..., Page]

# The default is 5 s. On a busy machine a live page waits longer than that for its next document: making documents, and
# the requests of the pages, may take 1% of the time (LiveFeed), and 0.3 s of them mean 30 s.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. One per module, because Playwright's event loop must end before other modules."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        message = f"none of {', '.join(PROGRAMS)} is installed"
        if os.environ.get("CHROMIUM") == "required":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def run_ui(*arguments: str) -> Iterator[str]:
    """Run `extender ui` on a free port inside the block, and return the address of the first page."""
    command = [sys.executable, "-m", "extender", "ui", *arguments, "--port", "0", "--no-browser"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            match = re.fullmatch(r"The pages are at (\S+)\n", process.stdout.readline())
            assert match is not None
            yield match.group(1)
        finally:
            process.terminate()  # also after a failure, which would otherwise wait for the process


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the first page of the demo's recorded cluster."""
    with run_ui("-f", DEMO) as address:
        yield address


def is_about_status(message: ConsoleMessage, page: Page) -> bool:
    """Whether a message only has the status 400 or 404 of the page itself."""
    is_of_page = message.location["url"] == page.url
    return is_of_page and re.search(r"responded with a status of 40[04] ", message.text) is not None


@pytest.fixture
def open_page(browser: Browser, url: str) -> Iterator[OpenPage]:
    """Return a function that opens a page in a new context. The test fails if the browser prints a message.

    Chromium prints one about the status of a page that is an error, which is expected.
    """
    messages: list[str] = []
    contexts: list[BrowserContext] = []

    def open_(path: str = "", **context_options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **context_options})  # type: ignore[arg-type]  # options of Playwright
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: None if is_about_status(message, page) else messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: messages.append(f"dialog: {dialog.message}"))
        page.goto(url + path if "://" not in path else path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert messages == []
