"""The FastAPI application with the pages: Cluster, Node, Waiting pods, Pod, and the search."""

import shlex
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
from fastapi import FastAPI, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

from extender import __version__
from extender.analysis.input.input_errors import InputError
from extender.analysis.text_table import format_count
from extender.answers.schema_version import AnswerKind, make_answer
from extender.basics.visible_text import make_visible
from extender.cache.pod_groups import get_pod_group_key
from extender.config.did_you_mean import did_you_mean
from extender.ui.cluster_document import make_node_document
from extender.ui.group_view import make_group_view
from extender.ui.json_response import make_json_response
from extender.ui.live_feed import ChangeFeed
from extender.ui.page_source import PageSource
from extender.ui.pod_view import make_pod_view
from extender.ui.scheduler_pages import PLOT_HEIGHT, PLOT_WIDTH, LiveDocument, SchedulerPages
from extender.ui.waiting_page import WaitingPage
from extender.ui.waiting_view import format_age, format_utc
from extender.ui.what_if.answers import WhatIfAnswers
from extender.ui.what_if.page import WhatIfPage

PREFIX: Final = "/ui"
_MAX_HITS: Final = 100
_STATIC_FILES: Final = Path(__file__).parent / "static"

Handler = Callable[..., Coroutine[Any, Any, Response]]


def make_app(
    source: PageSource,
    scheduler_pages: SchedulerPages | None = None,
    answers: WhatIfAnswers | None = None,
    changes: ChangeFeed | None = None,
) -> FastAPI:
    """Return the ASGI application. It does not authenticate requests, and adds no protecting headers.

    Args:
        source: the contents of the pages.
        scheduler_pages: the pages Queue and Decisions; None without a scheduler in this process.
        answers: answers the questions of the page What if; None without this page.
        changes: tells the pages Cluster and Waiting pods about changes; None for a cluster that does not change.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    pages = Pages(source, scheduler_pages, changes, has_what_if=answers is not None)
    app.mount(f"{PREFIX}/static", StaticFiles(directory=_STATIC_FILES), name="static")
    handlers: dict[str, Handler] = {
        "/": pages.show_cluster,
        "/data/cluster": pages.get_cluster_document,
        "/nodes/{name}": pages.show_node,
        "/data/nodes/{name}": pages.get_node_document,
        "/waiting": WaitingPage(source, pages.render, pages.measure).show,
        "/pods/{namespace}/{name}": pages.show_pod,
        "/groups/{namespace}/{name}": pages.show_group,
        "/data/pods/{namespace}/{name}": pages.get_pod_document,
        "/search": pages.search,
    }
    if scheduler_pages is not None:
        handlers |= {
            "/queue": pages.make_live_handler("queue.html", scheduler_pages.make_queue_document),
            "/decisions": pages.make_live_handler("decisions.html", scheduler_pages.make_decisions_document),
            "/events/queue": scheduler_pages.queue_feed.respond,
            "/events/decisions": scheduler_pages.decisions_feed.respond,
        }
    if answers is not None:
        what_if_page = WhatIfPage(source, answers, pages.render)
        handlers |= {"/what-if": what_if_page.show, "/data/what-if": what_if_page.get_document}
    if changes is not None:
        handlers["/events/changes"] = changes.respond
    routes = {PREFIX + path: handler for path, handler in handlers.items()}
    for path, handler in (routes | dict.fromkeys(("/", PREFIX), redirect_to_pages)).items():
        app.add_api_route(path, handler, methods=["GET", "HEAD"], response_model=None)
    for error in (HTTPException, Exception):
        app.add_exception_handler(error, pages.show_http_error)
    app.add_exception_handler(InputError, pages.show_input_error)
    return app


async def redirect_to_pages() -> Response:
    """Redirect to the first page."""
    return RedirectResponse(f"{PREFIX}/")


@cache
def get_environment() -> Environment:
    """Return the Jinja environment. Its templates escape markup, and show unprintable characters as escapes."""
    environment = Environment(
        loader=PackageLoader("extender.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {"age": format_age, "utc": format_utc, "count_of": format_count}
    return environment


def _finalize(value: Any) -> Any:
    # A template's own text is Markup after a macro call; it is not changed.
    return make_visible(value) if type(value) is str else value


class Pages:
    """The handlers of the pages. They run in the event loop, since the source is not thread-safe.

    Attributes:
        measure: counts the time of a block for the feed of changes.
    """

    def __init__(
        self,
        source: PageSource,
        scheduler_pages: SchedulerPages | None,
        changes: ChangeFeed | None,
        *,
        has_what_if: bool,
    ) -> None:
        self._source, self._scheduler_pages, self._has_what_if = source, scheduler_pages, has_what_if
        self.measure: Callable[[], AbstractContextManager[None]] = nullcontext if changes is None else changes.measure
        self._environment = get_environment()

    async def show_cluster(self) -> Response:
        """Show all nodes."""
        with self.measure():
            state = self._source.get_state()
            return self.render(
                "cluster.html",
                totals=state.cluster_values["totals"],
                node_count=len(state.cluster_values["nodes"]),
                waiting_count=sum(map(len, state.waiting_pods)),
                change_version=state.version,
            )

    async def get_cluster_document(self, request: Request) -> Response:
        """Return the document of the page Cluster."""
        with self.measure():
            return make_json_response(request, self._source.get_state().cluster_document)

    async def show_node(self, name: str) -> Response:
        """Show one node."""
        return self.render("node.html", node=self._find_node(name))

    async def get_node_document(self, name: str) -> Response:
        """Return the document of a node."""
        return Response(msgspec.json.encode(self._find_node(name)), media_type="application/json")

    def _find_node(self, name: str) -> dict[str, Any]:
        snapshot = self._source.get_snapshot()
        document = make_node_document(snapshot, name)
        if document is None:
            raise HTTPException(404, f"There is no node {name}{did_you_mean(name, snapshot.names) or '.'}")
        return document

    async def show_pod(self, namespace: str, name: str, unfold: str = "", node: str = "") -> Response:
        """Show one pod: why it waits, or why it is on its node; with *node* also all results of that node."""
        pod, report = self._source.explain(f"{namespace}/{name}")
        pages = self._scheduler_pages
        attempts = [] if pages is None else pages.list_attempt_rows(pod.uid_or_key)
        view, group_key = make_pod_view(report, pod, unfold=unfold, node=node.strip()), get_pod_group_key(pod)
        quoted_key = shlex.quote(pod.key)
        return self.render("pod.html", view=view, attempts=attempts, group_key=group_key, quoted_key=quoted_key)

    async def show_group(self, namespace: str, name: str) -> Response:
        """Show one pod group: its members, and what its gang lacks."""
        key = f"{namespace}/{name}"
        group = make_group_view(self._source, key)
        if group is None:
            raise HTTPException(404, f"There is no pod group {key}.")
        return self.render("group.html", group=group)

    async def get_pod_document(self, request: Request, namespace: str, name: str) -> Response:
        """Return what `extender explain -o json` prints for a pod."""
        pod, report = self._source.explain(f"{namespace}/{name}")
        values = make_answer(AnswerKind.EXPLANATION, {"pods": {pod.key: report.to_values()}})
        return make_json_response(request, msgspec.json.encode(values) + b"\n")

    async def search(self, q: str = "") -> Response:
        """Show the nodes and the pods whose names contain a text, first the pods that wait.

        A complete name leads to its page.
        """
        text = q.strip().lower()
        node_names = self._source.get_node_names() if text else {}
        keys = [key for key in node_names if text in {key, key.partition("/")[2]}]
        paths = [f"/pods/{key}" for key in keys]
        paths += [f"/nodes/{text}"] if text in self._source.get_snapshot().names else []
        address = f"{PREFIX}{quote(paths[0])}" if len(paths) == 1 else ""
        if address:
            return RedirectResponse(address, 303)
        nodes = sorted(name for name in self._source.get_snapshot().names if text in name) if text else []
        pods = [pod for pod in node_names.items() if text in pod[0]]
        pods.sort(key=lambda pod: (bool(pod[1]), pod[0]))  # pods that wait are first
        hits = {"nodes": nodes[:_MAX_HITS], "pods": dict(pods[:_MAX_HITS])}
        return self.render("search.html", query=q.strip(), hits=hits, node_count=len(nodes), pod_count=len(pods))

    def make_live_handler(
        self, template: str, make_document: Callable[[], LiveDocument]
    ) -> Callable[[], Coroutine[Any, Any, Response]]:
        """Return the handler of a live page, which shows the current document."""

        async def show() -> Response:
            return self.render(template, live=make_document(), plot_size=f"{PLOT_WIDTH} {PLOT_HEIGHT}")

        return show

    async def show_http_error(self, request: Request, error: Exception) -> Response:
        """Show an error such as an unknown path, or an exception, which a plugin may raise."""
        status, message = 500, f"Internal error: {type(error).__name__}. The log of this process has the details."
        if isinstance(error, HTTPException):
            status, message = error.status_code, str(error.detail)
        message = "There is no such page." if message == "Not Found" else message
        return self._show_error(request, status, [message])

    async def show_input_error(self, request: Request, error: Exception) -> Response:
        """Show why a pod cannot be explained."""
        lines = (
            [f"{line.object_name}: {line.message}" for line in error.errors] if isinstance(error, InputError) else []
        )
        return self._show_error(request, 404, lines)

    def _show_error(self, request: Request, status: int, lines: Sequence[str]) -> Response:
        """Return a page with *lines*, or in place of a JSON document the object that invalid questions get, too."""
        if request.url.path.startswith(f"{PREFIX}/data/"):
            return make_json_response(request, msgspec.json.encode({"errors": lines}), status)
        return self.render("error.html", status, message="; ".join(lines))

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        context: Mapping[str, Any] = {
            **values,
            "prefix": PREFIX,
            "title": self._source.title,
            "command_options": self._source.command_options,
            "version": __version__,
            "template": template,
            "status": status,
            "has_scheduler": self._scheduler_pages is not None,
            "has_what_if": self._has_what_if,
            "is_live": self._source.is_live,
            "made_at": datetime.now(UTC),
            "problems": self._source.list_problems(),
            "stale_time": self._source.get_stale_time(),
        }
        html = self._environment.get_template(template).render(context)
        return Response(html, status, media_type="text/html", headers={"Cache-Control": "no-store"})
