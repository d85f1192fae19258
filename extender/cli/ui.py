"""`extender ui`: pages about a live or recorded cluster, opened in the browser."""

import asyncio
import contextlib
import logging
import shlex
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from extender.app.pages.ui_pages import make_answers
from extender.app.startup import StartError, handle_signals, open_listening_socket, wait_until_stopped
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, load_setup_for_live_cluster
from extender.cli.recording_options import InputOptions, make_offline_runtime, read_inputs, redirect_plugin_output
from extender.cli.terminal import ProgressBar, write_error
from extender.serving.http_server import format_listener_url, serve_http
from extender.serving.serving_options import ServingOptions
from extender.ui.mounted_pages import HostCheckMiddleware, OpenPages, ResponseHeadersMiddleware
from extender.ui.page_source import RecordedSource
from extender.ui.pages import PREFIX, make_app

_DEFAULT_PORT: Final = 8800
_ADDRESS: Final = "127.0.0.1"
_FAILED: Final = 1
_EPILOG: Final = """\b
Examples:
  extender ui                                              the live cluster; the pages follow it
  extender ui -f cluster.json.gz                           opens the pages in the browser
  extender ui -f cluster.json.gz --no-browser              only prints their address
  extender ui -f cluster.json.gz --config scheduler.yaml   with another configuration
  extender record -o - | extender ui -f -

The pages are served on loopback only. Ctrl-C ends the command."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def ui(
    file: options.FilesOrClusterOption = None,
    config: options.ConfigOption = "",
    feature_gates: options.GatesOption = None,
    emulated_version: options.EmulatedVersionOption = "",
    override: options.OverrideOption = False,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port on loopback; 0 selects a free port.")
    ] = _DEFAULT_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    verbose: options.VerboseOption = False,
) -> None:
    """Show a cluster in the browser: its nodes, the pods that wait, and why.

    Without -f, the pages follow the live cluster of the current kubeconfig, which is only read: the verbs list and
    watch are enough. A right that is missing and a lost connection are shown on the pages.

    The page Cluster has one cell per node, coloured by the use of a resource. Waiting pods are grouped by the reason
    for which they wait. The page of a pod has the results of every plugin on every node, the nearest misses, the scores
    and the victims of preemption: the values of `extender explain -o json`. Nothing is changed.
    """
    inputs = InputOptions(config, feature_gates or (), emulated_version, override)
    command_options = _format_options(file or [], inputs, kubeconfig, context)
    if file:
        pages = _open_recorded_pages(file, inputs, command_options, verbose=verbose)
    else:
        pages = _open_watched_pages(ClusterOptions(kubeconfig, context), inputs, command_options, verbose=verbose)
    try:
        asyncio.run(_serve(pages, port, opens_browser=not no_browser))
    except StartError as error:
        write_error(str(error))
        raise typer.Exit(_FAILED) from error


@contextlib.asynccontextmanager
async def _open_recorded_pages(
    files: list[str], input_options: InputOptions, options: str, *, verbose: bool
) -> AsyncIterator[OpenPages]:
    """Open the pages of a recorded cluster.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: a file or the configuration is invalid.
    """
    with redirect_plugin_output():
        inputs = read_inputs(files, input_options)
        setup, runtime = inputs.setup, make_offline_runtime(verbose=verbose)
        source = RecordedSource(inputs.recording, setup.profiles, runtime, options)
        answers = make_answers(source, lambda: setup)
    yield OpenPages(make_app(source, answers=answers))


@contextlib.asynccontextmanager
async def _open_watched_pages(
    cluster_options: ClusterOptions, input_options: InputOptions, options: str, *, verbose: bool
) -> AsyncIterator[OpenPages]:
    """Open the pages of the live cluster, and follow it.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: the configuration is invalid.
        UnreadableError: the cluster cannot be read.
    """
    setup = await asyncio.to_thread(load_setup_for_live_cluster, input_options, cluster_options)
    logging.getLogger("extender").addHandler(logging.NullHandler())  # the pages show what the watches would log
    # The client of the API server is imported only here: a recording is shown in less time without it.
    module: Any = import_module("extender.app.pages.watched_pages")
    make_runtime = partial(make_offline_runtime, verbose=verbose)
    async with contextlib.AsyncExitStack() as stack:
        progress_bar = stack.enter_context(ProgressBar("kinds"))
        with redirect_plugin_output():
            pages = await stack.enter_async_context(
                module.open_watched_pages(
                    setup, cluster_options.credential_source, options, make_runtime, progress_bar.show
                )
            )
        progress_bar.erase()
        for line in pages.list_problems():
            write_error(line)
        yield pages


def _format_options(files: list[str], input_options: InputOptions, kubeconfig: str, context: str) -> str:
    """Return the options that select the same cluster and configuration, for a shell."""
    options = [("-f", name) for name in files] + [("--feature-gates", gate) for gate in input_options.feature_gates]
    single = {
        "--config": input_options.config,
        "--emulated-version": input_options.emulated_version,
        "--kubeconfig": kubeconfig,
        "--context": context,
    }
    options += [(flag, value) for flag, value in single.items() if value]
    override = ["--override"] if input_options.override else []
    return " ".join([*(f"{flag} {shlex.quote(value)}" for flag, value in options), *override])


async def _serve(opening: AbstractAsyncContextManager[OpenPages], port: int, *, opens_browser: bool) -> None:
    """Serve the pages until a signal.

    Raises:
        StartError: the port cannot be used.
    """
    stopping = asyncio.Event()
    # A signal while the cluster is read ends the process as usual.
    async with contextlib.AsyncExitStack() as stack:
        pages = await stack.enter_async_context(opening)
        listener = stack.enter_context(open_listening_socket(ServingOptions(address=_ADDRESS, port=port), "--port"))
        url = f"{format_listener_url(listener)}{PREFIX}/"
        stack.enter_context(handle_signals(stopping.set))
        app = ResponseHeadersMiddleware(HostCheckMiddleware(pages.app))
        await stack.enter_async_context(serve_http(app, listener, None, shutdown_timeout=1))
        stack.callback(pages.close)  # otherwise the server would wait for the streams
        sys.stdout.write(f"The pages are at {url}\n")
        sys.stdout.flush()
        if opens_browser and not await asyncio.to_thread(webbrowser.open, url):
            write_error("no browser was found; open the address yourself")
        await wait_until_stopped(stopping, pages.watches)
