"""The form of the page What if while a question is answered, in a real browser."""

from playwright.sync_api import expect

from tests.ui.conftest import OpenPage


def test_the_form_is_usable_after_a_question_that_the_reader_stops(open_page: OpenPage) -> None:
    page = open_page("what-if")
    page.locator("html[data-ready=true]").wait_for(state="attached")
    page.route("**/what-if?*", lambda route: route.fulfill(status=204))  # the browser stays on the page, as after Stop
    page.get_by_label("Drain nodes").fill("general-a1")
    with page.expect_response("**/what-if?*") as response:
        page.get_by_role("button", name="Answer").click()
    assert response.value.url.endswith("/ui/what-if?drain=general-a1")
    page.get_by_label("like the node").fill("gpu-a1", timeout=5_000)
    expect(page.get_by_label("Add nodes")).to_be_enabled()
    expect(page.get_by_label("Drain nodes")).to_have_value("general-a1")
