"""`extender demo`: an in-memory API server and the standalone scheduler in one process, with a live display."""

import asyncio
import errno
import logging
import os
import signal
import sys
from dataclasses import replace
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from extender.app import wiring
from extender.cli.recording_options import load_setup_from_file, redirect_plugin_output
from extender.cli.terminal import write_error
from extender.client.errors import ApiError
from extender.demo.runner import DemoOptions, SchedulerEndedError, run_demo
from extender.demo.scenario import MAX_PODS_PER_NODE, DemoSize
from extender.logs.klog import LoggingOptions, configure_logging

_EPILOG: Final = """\b
Examples:
  extender demo                                 a scenario of sixteen seconds, then a summary
  extender demo --serve                         the same, then keep the cluster for kubectl until Ctrl-C
  extender demo --ui                            the same in the browser, until Ctrl-C
  extender demo --nodes 200 --pods 2000         larger
  extender demo --config binpack.yaml           with your own scheduler configuration

\b
The pods:
  web, api, report   of many sizes; reports finish and free their nodes
  cache              one per zone: the fourth waits for a fourth zone
  month-end          larger than any node: stays pending
  import             has a scheduling gate: stays pending
  training           low priority, on the only two GPUs
  answers            high priority and needs a GPU: preempts a training pod

Nothing is installed, and nothing outside this process is changed. The API server is in memory and listens on the
loopback address. The scheduler is that of `extender schedule` and calls this API server over HTTP. Without a terminal
the demo prints plain lines. The exit status is 0 at the end of the scenario and after Ctrl-C.

With --serve, kubectl apply -f, run, cordon, drain and delete work. kubectl create namespace NAME and the like send
protobuf, which this API server does not read; use kubectl apply -f."""

_FAILED: Final = 1

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class _PipeSafeConsole(Console):
    """A console that handles a closed output pipe (`extender demo | head`) like Ctrl-C."""

    def on_broken_pipe(self) -> None:
        """Stop printing, and stop the demo if it is running."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            signal.raise_signal(signal.SIGTERM)


@app.command(name="demo", epilog=_EPILOG)
def demo(
    nodes: Annotated[int, typer.Option(min=3, max=5000, metavar="N", help="Ordinary nodes, with 8 CPUs each.")] = 8,
    pods: Annotated[
        int, typer.Option(min=0, max=100_000, metavar="N", help="Ordinary pods, in addition to those of the scenario.")
    ] = 60,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the pods' sizes and times, and of the choice between equal nodes.")
    ] = 0,
    speed: Annotated[
        float, typer.Option(min=0.1, max=20.0, metavar="N", help="Seconds of the scenario per second.")
    ] = 1.0,
    serve: Annotated[bool, typer.Option("--serve", help="Keep the cluster up for kubectl, until Ctrl-C.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port of the API server; 0: any free port.")
    ] = 0,
    ui: Annotated[bool, typer.Option("--ui", help="Also show it in the browser, until Ctrl-C.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="With --ui: do not open the browser.")] = False,
    config: Annotated[str, typer.Option(metavar="FILE", help="KubeSchedulerConfiguration of the scheduler.")] = "",
) -> None:
    """Watch the scheduler schedule a simulated cluster.

    Most pods are scheduled at once. Some stay pending with a reason until the event that they wait for. One is
    preempted by a pod of higher priority. The demo needs no cluster; it ends after about twenty seconds with a summary.
    """
    if pods > nodes * MAX_PODS_PER_NODE:
        message = f"{pods} are too many for {nodes} nodes; at most {MAX_PODS_PER_NODE} per node"
        raise typer.BadParameter(message, param_hint="--pods")
    if no_browser and not ui:
        raise typer.BadParameter("needs --ui", param_hint="--no-browser")
    console = _PipeSafeConsole(file=sys.stdout)
    configure_logging(LoggingOptions())
    logging.getLogger().setLevel(logging.WARNING)  # the console shows the rest
    try:
        with redirect_plugin_output():
            setup = load_setup_from_file(config) if config else wiring.build_setup()
            connection = msgspec.structs.replace(setup.configuration.client_connection, qps=-1.0)  # no rate limit
            setup = replace(setup, configuration=replace(setup.configuration, client_connection=connection))
            size = DemoSize(nodes, pods, seed)
            options = DemoOptions(setup, size, speed, serve or ui, port, serves_ui=ui, opens_browser=not no_browser)
            asyncio.run(run_demo(options, console))
    except (ApiError, SchedulerEndedError) as error:
        write_error(str(error))
        raise typer.Exit(_FAILED) from error
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        is_used = error.errno == errno.EADDRINUSE  # otherwise it may be about the temporary folder
        write_error(f"port {port}: {reason}; choose another port with --port" if is_used else str(error))
        raise typer.Exit(_FAILED) from error
