"""The pages while they are open, and ASGI middleware that serves the pages under `/ui/` beside another application."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.scheduler.api_writer import do_nothing
from extender.ui.pages import PREFIX


@dataclass(frozen=True, slots=True)
class OpenPages:
    """The pages of `extender ui` while they are open.

    Attributes:
        close: ends the streams of the pages, before the server stops.
        list_problems: returns a line for each missing right and each lost watch.
        watches: the task that watches the cluster, which ends only after an internal error; None for a recording.
    """

    app: FastAPI
    close: Callable[[], None] = do_nothing
    list_problems: Callable[[], Sequence[str]] = tuple
    watches: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class MountedPages:
    """An ASGI application that passes requests for `/ui` and the paths below it to `pages`, and all others to `app`.

    Attributes:
        app: the application with all other paths.
        pages: the application with the pages.
        close: ends the streams of the pages, before the server stops.
    """

    app: ASGIApp
    pages: ASGIApp
    close: Callable[[], None] = do_nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_page = scope["type"] == "http" and f"{scope['path']}/".startswith(f"{PREFIX}/")
        await (self.pages if is_page else self.app)(scope, receive, send)


def find_pattern_of_pages(patterns: Iterable[str]) -> str:
    """Return the first of *patterns* that matches a path of the pages; empty if there is none.

    A `*` at the end of a pattern matches any suffix, as in `AuthorizationOptions.always_allowed_paths`.
    """
    prefix = f"{PREFIX.lstrip('/')}/"
    for pattern in patterns:
        text = pattern.lstrip("/").removesuffix("*")
        if f"{text}/".startswith(prefix) or text.startswith(prefix):
            return pattern
        if pattern.endswith("*") and prefix.startswith(text):
            return pattern
    return ""
