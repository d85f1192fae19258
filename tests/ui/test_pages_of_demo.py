"""`extender demo --ui` in a real browser."""

import re
import signal
import subprocess
import sys

from playwright.sync_api import expect

from tests.ui.conftest import ROOT, OpenPage


def test_the_scenario_is_watched_in_the_browser_and_the_cluster_stays(open_page: OpenPage) -> None:
    command = [sys.executable, "-m", "extender", "demo", "--ui", "--no-browser", "--speed", "8"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            addresses = (re.fullmatch(r"The pages are at (\S+)\n", line) for line in process.stdout)
            match = next(filter(None, addresses))
            assert match is not None
            address = match.group(1)
            page = open_page(f"{address}decisions")
            expect(page.locator("#connection")).to_have_text("Live.")
            expect(page.get_by_role("row").filter(has_text="shop/cache-4").first).to_be_visible()
            page.close()  # a page whose stream ends connects again, and would report that the server ended
            page = open_page(f"{address}queue")
            expect(page.locator("[data-rows=gated]")).to_contain_text("import")
            expect(page.locator("[data-rows=unschedulable]")).to_contain_text("batch/month-end")
            page.close()
            page = open_page(f"{address}pods/batch/month-end")
            expect(page.locator(".state")).to_contain_text("fits on none of")
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(30) == 0
        finally:
            process.kill()  # after a failure, which would otherwise wait for the process
