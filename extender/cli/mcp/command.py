"""`extender mcp`: serve the questions about a cluster as tools of the Model Context Protocol, on stdio or HTTP."""

import asyncio
import signal
import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from extender.app.startup import StartError, handle_signals, open_listening_socket
from extender.basics.clock import SystemClock
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, read_cluster
from extender.cli.mcp.loaded_cluster import ClusterSource
from extender.cli.recording_options import InputOptions
from extender.cli.terminal import write_error
from extender.serving.http_server import format_listener_url, serve_http
from extender.serving.serving_options import ServingOptions

_EPILOG: Final = """\b
Examples:
  extender mcp                                       the live cluster, on stdio
  extender mcp -f cluster.json.gz                    a recording
  extender mcp --http --port 8811                    at http://127.0.0.1:8811/mcp

\b
An MCP client starts it with a configuration such as
  {"mcpServers": {"scheduling":
    {"command": "extender", "args": ["mcp", "-f", "cluster.json.gz"]}}}"""

_ADDRESS: Final = "127.0.0.1"
_DEFAULT_PORT: Final = 8811
_FAILED: Final = 1

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def mcp(
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1 instead of stdio.")] = False,
    port: Annotated[int, typer.Option(metavar="PORT", help="With --http: the port; 0 for any.")] = _DEFAULT_PORT,
    max_age: Annotated[
        float, typer.Option(metavar="SECONDS", help="Read a live cluster again for a question after this time.")
    ] = 30.0,
) -> None:
    """Answer questions of an AI client about a cluster, with tools that change nothing.

    Tools: why_waiting, why_here, what_if, fits, rebalance_plan and cluster_summary. A page of an answer has at most
    2,000 tokens. The client names no file and no cluster. With --http, every user of this machine can ask.

    It needs the package mcp: pip install 'kube-scheduler-extender[mcp]'
    """
    if not 0 <= port <= 65535:
        raise typer.BadParameter(f"{port}; want 0 to 65535", param_hint="--port")
    if port != _DEFAULT_PORT and not http:
        raise typer.BadParameter("needs --http", param_hint="--port")
    if not max_age >= 0:
        raise typer.BadParameter(f"{max_age}; want 0 or more seconds", param_hint="--max-age")
    server_module = _import_server()
    input_options = InputOptions(config, tuple(feature_gates or ()), emulated_version, override)
    cluster_options = ClusterOptions(kubeconfig, context)
    source = ClusterSource(
        lambda: read_cluster(file, input_options, cluster_options), SystemClock(), None if file else max_age
    )
    source.get()  # a wrong option is an error now, not in the first answer
    server = server_module.make_server(source)
    if not http:
        _serve_stdio(server)
        return
    try:
        asyncio.run(_serve_http(server_module, server, port))
    except StartError as error:
        write_error(str(error))
        raise typer.Exit(_FAILED) from error


def _import_server() -> Any:
    """Import the module that needs the package mcp."""
    try:
        return import_module("extender.cli.mcp.server")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "pydantic"}:
            raise
        raise typer.BadParameter(
            "needs the package mcp; install it with pip install 'kube-scheduler-extender[mcp]'", param_hint="mcp"
        ) from error


def _serve_stdio(server: Any) -> None:
    """Serve standard input until it ends, the client closes standard output, or Ctrl-C."""
    # Python's own handler of Ctrl-C would wait for the thread that reads standard input.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(server.run_stdio_async())
    except BaseExceptionGroup as group:
        if group.split(BrokenPipeError)[1] is not None:
            raise
        # From Python 3.13, the library's writer, which cannot be flushed any more, would print this error again.
        sys.unraisablehook = lambda _: None
        raise typer.Exit(_FAILED) from group


async def _serve_http(server_module: Any, server: Any, port: int) -> None:
    """Serve HTTP until a signal.

    Raises:
        StartError: the port cannot be used.
    """
    stopping = asyncio.Event()
    with open_listening_socket(ServingOptions(address=_ADDRESS, port=port), "--port") as listener:
        url = format_listener_url(listener)
        actual_port = listener.getsockname()[1]
        http_app = server_module.make_http_app(server, [f"{host}:{actual_port}" for host in (_ADDRESS, "localhost")])
        with handle_signals(stopping.set):
            async with server.session_manager.run(), serve_http(http_app, listener, None, shutdown_timeout=1):
                write_error(f"MCP at {url}{server_module.HTTP_PATH}")
                sys.stderr.flush()
                await stopping.wait()
