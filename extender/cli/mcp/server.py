"""The Model Context Protocol server: its tools, and the conversion of errors to answers. Imports the optional mcp."""

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from traceback import clear_frames
from typing import Annotated, Any, Final, Literal

import anyio
import anyio.from_thread
import anyio.to_thread
import typer
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from pydantic import Field, ValidationError
from starlette.routing import Route
from starlette.types import ASGIApp

from extender import __version__
from extender.analysis.input.input_errors import InputError, UnreadableError
from extender.basics.input_limits import shorten
from extender.basics.visible_text import make_visible
from extender.cli.mcp import cluster_questions, pod_questions
from extender.cli.mcp.answer_pages import QuestionError, select_page
from extender.cli.mcp.disconnects import DisconnectMiddleware
from extender.cli.mcp.loaded_cluster import ClusterSource, LoadedCluster
from extender.cli.planning.scenario_input import ScenarioFlags
from extender.cli.recording_options import redirect_plugin_output
from extender.config.errors import ConfigError
from extender.planning.scenario import ScenarioError

HTTP_PATH: Final = "/mcp"
MAX_REQUEST_BYTES: Final = 256 * 1024
_MAX_TEXT: Final = 128 * 1024
_MAX_NAME: Final = 512
_MAX_CHANGES: Final = 100
_MAX_REPLICAS: Final = 10_000
_MAX_LIMIT: Final = 100_000
_MAX_QUEUED_CALLS: Final = 16
_MAX_ERROR_LINES: Final = 10

_FLAG: Final = re.compile(rf"(?<!\S)--(?=({'|'.join(field.name for field in fields(ScenarioFlags))})\b)")
"""The dashes of a flag in an error of the command line. The arguments of the tools have the flags' names."""

_INSTRUCTIONS: Final = """\
Answers about the scheduling of one Kubernetes cluster, by the rules of kube-scheduler. Nothing is changed: what_if and
fits work on a copy. Start with cluster_summary, or with why_waiting without a pod. A pod is named web-1 or
namespace/web-1; a workload such as deployment/web stands for its pods. Texts of reasons are kube-scheduler's; reason
codes are stable. Long answers have pages."""

Text = Annotated[str, Field(max_length=_MAX_NAME)]
Manifest = Annotated[str, Field(max_length=_MAX_TEXT, description="Pods or workloads as YAML or JSON.")]
Names = Annotated[list[Text], Field(max_length=_MAX_CHANGES)]
Page = Annotated[int, Field(ge=1, le=100_000, description="The page of a long answer.")]
Full = Annotated[bool, Field(description="The complete answer as YAML, node by node, in pages.")]
PodName = Annotated[Text, Field(description="A pod: web-1, namespace/web-1; or a workload: deployment/web.")]
Namespace = Annotated[Text, Field(description="The namespace of names without one.")]


def make_server(source: ClusterSource) -> MCPServer:
    """Return the server with its tools. Calls run one after another, because they use one copy of the cluster."""
    caller = _Caller(source)
    functions = (*_make_pod_tools(caller), *_make_cluster_tools(caller), *_make_plan_tools(caller))
    return MCPServer(
        "extender",
        title="Kubernetes scheduling",
        instructions=_INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        subscriptions=False,
        tools=list(map(_make_tool, functions)),
    )


def _make_tool(function: Callable[..., object]) -> Tool:
    """Return a tool that rejects unknown arguments. The library would ignore them, and answer another question."""
    annotations = ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tool = _Tool.from_function(function, annotations=annotations, structured_output=False)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


class _Tool(Tool):
    """A tool whose error about invalid arguments has one line for each, without a link to the library's pages."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            details = error.__cause__.errors(include_url=False, include_input=False)[:_MAX_ERROR_LINES]
            lines = (f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details)
            raise ToolError("\n".join(make_visible(shorten(line)) for line in lines)) from error


def make_http_app(server: MCPServer, hosts: list[str]) -> ASGIApp:
    """Return the application for HTTP: stateless, JSON responses, limited requests. Only POST is allowed.

    Without sessions, the stream that the library opens for GET never has a message and never ends.

    *hosts* are the accepted values of the header Host; others are refused, as are all pages of other origins.
    """
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = server.streamable_http_app(
        streamable_http_path=HTTP_PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=security,
    )
    for route in app.routes:
        if isinstance(route, Route) and route.path == HTTP_PATH:
            route.methods = {"POST"}
    return DisconnectMiddleware(app)


class _Caller:
    """Answers questions one at a time in a thread. More than a few waiting calls are refused."""

    def __init__(self, source: ClusterSource) -> None:
        self._source = source
        self._lock = anyio.Lock()
        self._queued = 0

    async def answer(self, ask: Callable[[LoadedCluster], str], page: int = 1) -> str:
        """Return one page of the answer of *ask*. If the client cancels the call, it ends soon, or does not begin.

        Raises:
            ToolError: the question is invalid, the cluster cannot be read, or too many calls wait.
        """
        if self._queued >= _MAX_QUEUED_CALLS:
            raise ToolError("too many calls wait; call again when others have ended")
        self._queued += 1
        try:
            async with self._lock:
                return await anyio.to_thread.run_sync(partial(self._answer, ask, page))
        except BaseException as error:
            _release_objects(error)
            raise
        finally:
            self._queued -= 1

    def _answer(self, ask: Callable[[LoadedCluster], str], page: int) -> str:
        with redirect_plugin_output():
            try:
                loaded = self._source.get()
                loaded.check_cancelled = anyio.from_thread.check_cancelled
                return select_page(make_visible(ask(loaded)), page)
            except (InputError, ConfigError, ScenarioError) as error:
                lines = [_FLAG.sub("", str(line)) for line in error.errors[:_MAX_ERROR_LINES]]
                raise ToolError(make_visible("\n".join(lines))) from error
            except (UnreadableError, QuestionError) as error:
                raise ToolError(make_visible(str(error))) from error
            except typer.BadParameter as error:
                text = f"{error.param_hint or 'argument'}: {error.message}"
                raise ToolError(make_visible(_FLAG.sub("", text))) from error
            except BaseException as error:  # also the exception of a cancelled call
                self._source.discard()
                if isinstance(error, cluster_questions.TimeLimitError):
                    raise ToolError(str(error)) from error
                raise


def _release_objects(error: BaseException | None) -> None:
    """Clear the local variables in the tracebacks of *error* and its causes.

    The library keeps an exception in a cycle until a full collection of garbage, which is rare in this process. A
    question about a million pods would keep them too.
    """
    released: list[BaseException] = []
    while error is not None and error not in released:  # an exception may be its own cause
        clear_frames(error.__traceback__)
        released.append(error)
        error = error.__cause__ or error.__context__


def _make_pod_tools(caller: _Caller) -> list[Callable[..., object]]:
    async def why_waiting(pod: PodName = "", namespace: Namespace = "", full: Full = False, page: Page = 1) -> str:
        """Why a pod has no node: rejected nodes by reason with codes, nearest nodes, what would help, preemption.

        Without a pod: all waiting pods in groups of alike pods.
        """
        if not pod:
            return await caller.answer(lambda loaded: pod_questions.answer_all_waiting(loaded, namespace, page))
        return await caller.answer(
            lambda loaded: pod_questions.answer_why_waiting(loaded, pod, namespace, full=full), page
        )

    async def why_here(pod: PodName, namespace: Namespace = "", full: Full = False, page: Page = 1) -> str:
        """Why a pod is on its node: the rank and the scores of the node now, and where the pod would go now."""
        return await caller.answer(
            lambda loaded: pod_questions.answer_why_here(loaded, pod, namespace, full=full), page
        )

    return [why_waiting, why_here]


def _make_cluster_tools(caller: _Caller) -> list[Callable[..., object]]:
    async def cluster_summary() -> str:
        """The numbers of nodes, pods and waiting pods, the use of each resource, the fullest and emptiest nodes."""
        return await caller.answer(cluster_questions.answer_summary)

    async def what_if(
        drain: Annotated[Names, Field(description="Nodes to drain, as kubectl drain does.")] = [],
        cordon: Annotated[Names, Field(description="Nodes to cordon.")] = [],
        remove: Annotated[Names, Field(description="Nodes that fail.")] = [],
        lose: Annotated[Names, Field(description="KEY=VALUE: all nodes with this label fail, such as a zone.")] = [],
        add: Annotated[int, Field(ge=0, le=_MAX_REPLICAS, description="The number of new nodes.")] = 0,
        like: Annotated[Text, Field(description="The existing node that the new ones resemble.")] = "",
        scale: Annotated[Names, Field(description="deployment/NAME=REPLICAS")] = [],
        taint: Annotated[Names, Field(description="NODE=KEY=VALUE:EFFECT; NODE=KEY- removes taints.")] = [],
        label: Annotated[Names, Field(description="NODE=KEY=VALUE; NODE=KEY- removes the label.")] = [],
        pods: Manifest = "",
        replicas: Annotated[int, Field(ge=1, le=_MAX_REPLICAS, description="Copies of each pod in pods.")] = 1,
        preempt: Annotated[bool, Field(description="Whether pods may evict pods of lower priority.")] = False,
        namespace: Annotated[Text, Field(description="The namespace of scale.")] = "default",
        full: Full = False,
        page: Page = 1,
    ) -> str:
        """What a change would do: which pods move where, wait and why, are lost or evicted; use before and after.

        All changes may be combined. The cluster itself is not changed.
        """
        flags = ScenarioFlags(
            drain=drain, cordon=cordon, remove=remove, lose=lose, add=[add] if add else [], like=[like] if like else [],
            scale=scale, taint=taint, label=label, replicas=replicas, preempt=preempt, namespace=namespace,
        )  # fmt: skip
        return await caller.answer(
            lambda loaded: cluster_questions.answer_what_if(loaded, flags, pods, full=full), page
        )

    return [cluster_summary, what_if]


def _make_plan_tools(caller: _Caller) -> list[Callable[..., object]]:
    async def fits(
        manifest: Manifest = "",
        like: Annotated[Text, Field(description="An existing pod to copy, instead of a manifest.")] = "",
        namespace: Namespace = "",
        limit: Annotated[int, Field(ge=1, le=_MAX_LIMIT, description="Stop counting at this number.")] = 1000,
        full: Full = False,
        page: Page = 1,
    ) -> str:
        """How many more copies of a pod fit, where the last one goes, and what stops the next one."""
        return await caller.answer(
            lambda loaded: cluster_questions.answer_fits(loaded, manifest, like, namespace, limit=limit, full=full),
            page,
        )

    async def rebalance_plan(
        question: Annotated[
            Literal["for", "empty", "fix"],
            Field(description="for: let a pod run; empty: which nodes can be emptied; fix: end violations of rules."),
        ],
        pod: Annotated[Text, Field(description="With for: the waiting pod, deployment/NAME or podgroup/NAME.")] = "",
        namespace: Namespace = "",
        full: Full = False,
        page: Page = 1,
    ) -> str:
        """An ordered plan of evictions, each proven by a scheduling cycle at its turn. Nothing is evicted."""
        return await caller.answer(
            lambda loaded: cluster_questions.answer_rebalance(loaded, pod, namespace, question=question, full=full),
            page,
        )

    return [fits, rebalance_plan]
