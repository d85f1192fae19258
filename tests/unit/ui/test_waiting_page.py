"""The page Waiting pods arrives in parts."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import pytest
from fastapi import Response
from starlette.responses import StreamingResponse

from extender.analysis.input.input_errors import make_input_error
from extender.api.kinds.pod import Pod
from extender.ui.page_source import RecordedSource
from extender.ui.pages import Pages
from extender.ui.waiting_page import WaitingPage
from extender.ui.waiting_view import AlikePods


def make_clock(step: float) -> Callable[[], float]:
    """A clock that advances by *step* seconds with each call."""
    times = iter(range(1000))
    return lambda: step * next(times)


def make_page(source: RecordedSource, step: float) -> WaitingPage:
    render = Pages(source, None, None, has_what_if=False).render
    return WaitingPage(source, render, nullcontext, make_clock(step))


async def read_parts(response: Response) -> list[str]:
    assert isinstance(response, StreamingResponse)
    return [part.decode() async for part in response.body_iterator]  # type: ignore[union-attr]  # all parts are bytes


async def read_twice(page: WaitingPage) -> tuple[list[str], str]:
    parts = await read_parts(await page.show())
    again = await page.show()
    return parts, bytes(again.body).decode()


def test_the_page_begins_before_the_pods_are_explained(demo_source: RecordedSource) -> None:
    """The demo has eight pods that wait, each of them different. The progress is sent at most twice a second."""
    parts, again = asyncio.run(read_twice(make_page(demo_source, 0.2)))
    first, *progress, last = parts
    assert '<h1 id="count">8 waiting pods</h1>' in first
    assert "<article>" not in first
    assert progress == [
        '<p class="progress" role="status">3 of the 8 entries of this page are explained.</p>\n',
        '<p class="progress" role="status">6 of the 8 entries of this page are explained.</p>\n',
    ]
    assert last.count("<article>") == 8
    assert again == f"{first}<!-- entries -->{last}"


def test_a_page_that_is_made_at_once_shows_no_progress(demo_source: RecordedSource) -> None:
    parts, _ = asyncio.run(read_twice(make_page(demo_source, 0.0)))
    assert len(parts) == 2


def test_a_pod_that_cannot_be_explained_does_not_hide_the_others(
    demo_source: RecordedSource, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception comes after the status and the first part. The next request tries again."""
    first_key, second_key = (pods[0].key for pods in demo_source.get_state().waiting_pods[:2])
    describe = demo_source.describe_waiting_pods

    def describe_others(pods: Sequence[Pod]) -> AlikePods:
        if pods[0].key == first_key:
            raise KeyError("secret")
        if pods[0].key == second_key:
            raise make_input_error("cluster", "waits for a scheduler without a profile")
        return describe(pods)

    monkeypatch.setattr(demo_source, "describe_waiting_pods", describe_others)
    page = make_page(demo_source, 0.0)
    first, last = asyncio.run(read_parts(asyncio.run(page.show())))
    assert "cannot be explained" not in first
    assert f"<li>{first_key}: internal error: KeyError</li>" in last
    assert f"<li>{second_key}: waits for a scheduler without a profile</li>" in last
    assert "secret" not in last
    assert last.count("<article>") == 6
    assert "</html>" in last
    assert [record.getMessage() for record in caplog.records] == ["Cannot explain a pod"]
    monkeypatch.undo()
    parts = asyncio.run(read_parts(asyncio.run(page.show())))
    assert parts[-1].count("<article>") == 8
