"""`extender ui`: pages about a live or recorded cluster, opened in the browser."""

import asyncio
import shlex
import sys
import webbrowser
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.recorded_cluster import Recording
from extender.analysis.required_kinds import RECORDED_KINDS
from extender.app.startup import StartError, handle_signals, open_listening_socket
from extender.app.what_if_answers import make_answers
from extender.cli.live.cluster_options import ClusterOptions, ContextOption, FilesOrClusterOption, KubeconfigOption
from extender.cli.recording_options import (
    ConfigOption,
    EmulatedVersionOption,
    GatesOption,
    Inputs,
    VerboseOption,
    load_setup_for_recording,
    make_offline_runtime,
    parse_gates_of_release,
    read_inputs,
    redirect_plugin_output,
)
from extender.cli.terminal import ProgressBar
from extender.serving.http_server import format_listener_url, serve_http
from extender.serving.serving_options import ServingOptions
from extender.ui.pages import PREFIX, make_app
from extender.ui.recorded_source import RecordedSource
from extender.ui.response_headers import ResponseHeadersMiddleware
from extender.ui.what_if.answers import WhatIfAnswers

_DEFAULT_PORT: Final = 8800
_ADDRESS: Final = "127.0.0.1"
_FAILED: Final = 1
_EPILOG: Final = """\b
Examples:
  extender ui                                            the live cluster, as it is now
  extender ui -f cluster.json.gz                         opens the pages in the browser
  extender ui -f cluster.json.gz --no-browser            only prints their address
  extender ui -f cluster.json.gz --config scheduler.yaml with another configuration
  extender record -o - | extender ui -f -

\b
The pages are served on loopback only. Ctrl-C ends the command."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def ui(
    file: FilesOrClusterOption = None,
    config: ConfigOption = "",
    feature_gates: GatesOption = None,
    emulated_version: EmulatedVersionOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port on loopback; 0 selects a free port.")
    ] = _DEFAULT_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the browser.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Show a cluster in the browser: its nodes, the pods that wait, and why.

    Without -f, the live cluster of the current kubeconfig is read once, at the start; nothing is written to it.

    The page Cluster has one cell per node, coloured by the use of a resource. Waiting pods are grouped by the reason
    for which they wait. The page of a pod has the results of every plugin on every node, the nearest misses, the scores
    and the victims of preemption: the values of `extender explain -o json`. Nothing is changed.
    """
    gates, versions = feature_gates or [], [emulated_version] if emulated_version else []
    with redirect_plugin_output():
        inputs = (
            read_inputs(file, config, gates, versions)
            if file
            else _read_live_cluster(ClusterOptions(kubeconfig, context), config, gates, versions)
        )
        options = _format_options(file or [], config, gates, emulated_version, kubeconfig, context)
        setup, runtime = inputs.setup, make_offline_runtime(verbose=verbose)
        source = RecordedSource(inputs.recording, setup.profiles, runtime, setup.gates, options)
        answers = make_answers(source, lambda: setup, is_live=False)
    try:
        asyncio.run(_serve(source, answers, port, opens_browser=not no_browser))
    except StartError as error:
        sys.stderr.write(f"extender: {error}\n")
        raise typer.Exit(_FAILED) from error


def _read_live_cluster(
    options: ClusterOptions, config: str, feature_gates: Iterable[str], versions: Iterable[str]
) -> Inputs:
    """Read everything that scheduling reads from the live cluster.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: the configuration is invalid.
        UnreadableError: the cluster cannot be read.
    """
    setup = load_setup_for_recording(config, Recording(), parse_gates_of_release(versions, feature_gates))
    progress_bar = ProgressBar("kinds")
    # The client of the API server is imported only here: a recording is shown in less time without it.
    reader: Any = import_module("extender.app.cluster_reader")
    try:
        recording = reader.read_cluster_kinds(options.credential_source, RECORDED_KINDS, progress_bar.show)
    finally:
        progress_bar.erase()
    return Inputs(convert_coscheduling_groups(recording, setup.gates), setup)


def _format_options(
    files: list[str], config: str, feature_gates: list[str], emulated_version: str, kubeconfig: str, context: str
) -> str:
    """Return the options that select the same cluster and configuration, for a shell."""
    options = [("-f", name) for name in files] + [("--feature-gates", gate) for gate in feature_gates]
    single = {
        "--config": config,
        "--emulated-version": emulated_version,
        "--kubeconfig": kubeconfig,
        "--context": context,
    }
    options += [(flag, value) for flag, value in single.items() if value]
    return " ".join(f"{flag} {shlex.quote(value)}" for flag, value in options)


async def _serve(source: RecordedSource, answers: WhatIfAnswers, port: int, *, opens_browser: bool) -> None:
    """Serve the pages until a signal.

    Raises:
        StartError: the port cannot be used.
    """
    stopping = asyncio.Event()
    with open_listening_socket(ServingOptions(address=_ADDRESS, port=port), "--port") as listener:
        url = f"{format_listener_url(listener)}{PREFIX}/"
        with handle_signals(stopping.set):
            async with serve_http(
                ResponseHeadersMiddleware(make_app(source, answers=answers)), listener, None, shutdown_timeout=1
            ):
                sys.stdout.write(f"The pages are at {url}\n")
                sys.stdout.flush()
                if opens_browser and not await asyncio.to_thread(webbrowser.open, url):
                    sys.stderr.write("extender: no browser was found; open the address yourself\n")
                await stopping.wait()
