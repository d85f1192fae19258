"""The handler of the page Waiting pods. It sends the page in parts, since each entry needs an explanation."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import Response
from starlette.responses import StreamingResponse

from extender.analysis.input.input_errors import InputError
from extender.api.kinds.pod import Pod
from extender.ui.page_source import PageSource, get_entries_per_page
from extender.ui.waiting_view import find_groups, group_by_reason, group_by_scheduler

_MAX_PAGES: Final = 64
_ENTRIES: Final = b"<!-- entries -->"
"""Where the entries begin in the template. Text of objects cannot contain it, since it is escaped."""

_PROGRESS_SECONDS: Final = 0.5

log = logging.getLogger("extender.ui")

Render = Callable[..., Response]
"""Renders a template with values: `render(template, **values)`."""


class WaitingPage:
    """Shows the pending pods by reason. A page is made once for each state of the cluster."""

    def __init__(
        self,
        source: PageSource,
        render: Render,
        measure: Callable[[], AbstractContextManager[None]],
        get_time: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the page.

        *measure* counts the time of a block for the feed of changes; *get_time* returns monotonic seconds.
        """
        self._source, self._render, self._measure, self._get_time = source, render, measure, get_time
        self._state_number, self._pages = -1, dict[tuple[str, int], Response]()

    async def show(self, page: str = "1", find: str = "") -> Response:
        """Show pending pods by reason; with *find* only those that are like a pod with this text in its key."""
        source, text = self._source, find.strip().lower()
        state, size = source.get_state(), get_entries_per_page(len(source.get_snapshot()))
        groups = find_groups(state.waiting_pods, text)
        page_count = max(1, -(-len(groups) // size))
        number = min(max(int(page), 1), page_count) if page.isascii() and page.isdigit() and len(page) < 10 else 1
        if self._state_number != state.number or len(self._pages) >= _MAX_PAGES:
            self._state_number, self._pages = state.number, {}
        if (text, number) in self._pages:
            return self._pages[text, number]
        values = {
            "pod_count": sum(map(len, state.waiting_pods)),
            "found_count": sum(map(len, groups)),
            "kind_count": len(groups),
            "find": find.strip(),
            "other_schedulers": group_by_scheduler(source.list_pods_of_other_schedulers()),
            "page": number,
            "page_count": page_count,
            "now": datetime.now(UTC) if source.is_live else None,
            "change_version": state.version,
        }
        parts = self._make_parts(groups[(number - 1) * size : number * size], values, self._pages, (text, number))
        return StreamingResponse(parts, media_type="text/html", headers={"Cache-Control": "no-store"})

    async def _make_parts(
        self,
        groups: Sequence[Sequence[Pod]],
        values: dict[str, Any],
        pages: dict[tuple[str, int], Response],
        key: tuple[str, int],
    ) -> AsyncIterator[bytes]:
        """Yield the page up to the entries, then the progress, then the entries; store the page in *pages*.

        The status is already sent, so the page itself names the pods whose explanation raises an exception.
        """
        yield bytes(self._render("waiting.html", reasons=(), failures=(), **values).body).partition(_ENTRIES)[0]
        entries, failures, last_time = [], list[str](), self._get_time()
        for pods in groups:
            try:
                with self._measure():
                    entries.append(self._source.describe_waiting_pods(pods))
            except InputError as error:
                failures += [f"{pods[0].key}: {line.message}" for line in error.errors]
            except Exception as error:  # code of plugins may raise anything
                log.exception("Cannot explain a pod", extra={"pod": pods[0].key})
                failures.append(f"{pods[0].key}: internal error: {type(error).__name__}")
            await asyncio.sleep(0)  # one explanation may delay a scheduler in this event loop, but not all of them
            if self._get_time() - last_time >= _PROGRESS_SECONDS:
                last_time = self._get_time()
                text = f"{len(entries)} of the {len(groups)} entries of this page are explained."
                yield f'<p class="progress" role="status">{text}</p>\n'.encode()
        with self._measure():
            page = self._render("waiting.html", reasons=group_by_reason(entries), failures=failures, **values)
        if not failures:
            pages[key] = page
        yield bytes(page.body).partition(_ENTRIES)[2]
