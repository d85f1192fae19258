"""`extender demo`: an API server and the standalone scheduler in one process, and what they do, live."""

import asyncio
import os
import signal
import sys
from dataclasses import replace
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from extender import wiring
from extender.cli.inputs import scheduling_from
from extender.client.errors import ApiError
from extender.demo.show import SchedulerEndedError, Show, run
from extender.demo.story import MOST_A_NODE, Crowd

_EPILOG: Final = """\b
Examples:
  extender demo                                 sixteen seconds of story, then what came of it
  extender demo --serve                         the same, and it stays for kubectl until Ctrl-C
  extender demo --nodes 200 --pods 2000         larger
  extender demo --config binpack.yaml           with your own configuration of the scheduler

\b
What there is to see:
  web, api, report   the crowd: pods of many sizes; reports finish and free their nodes
  cache              no two in one zone: the fourth waits until a node in a fourth zone joins
  month-end          larger than any node, waits
  import             held by a scheduling gate, waits
  training           low priority, on the two GPUs there are
  answers            urgent and wants a GPU: preempts a training

Nothing is installed, and nothing outside this process is touched. The API server is an in-memory one on the loopback;
the scheduler is that of `extender schedule` and speaks to it over HTTP. Without a terminal everything is told in plain
lines. The exit status is 0 when the story came to its end or was ended by Ctrl-C."""

_FAILED: Final = 1

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class _Heard(Console):
    """A console whose reader may go, as `head` does: that ends the show in good order, like Ctrl-C."""

    def on_broken_pipe(self) -> None:
        """Say nothing more, and stop if it still plays."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            signal.raise_signal(signal.SIGTERM)


@app.command(name="demo", epilog=_EPILOG)
def demo(
    nodes: Annotated[int, typer.Option(min=3, max=5000, metavar="N", help="Ordinary nodes, of 8 CPUs each.")] = 8,
    pods: Annotated[
        int, typer.Option(min=0, max=100_000, metavar="N", help="Ordinary pods, beside those of the story.")
    ] = 60,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of the pods' sizes and times, and of choices between equals.")
    ] = 0,
    speed: Annotated[
        float, typer.Option(min=0.1, max=20.0, metavar="N", help="Seconds of the story in one second.")
    ] = 1.0,
    serve: Annotated[bool, typer.Option("--serve", help="Keep the cluster up for kubectl, until Ctrl-C.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Of the API server; 0 takes a free one.")
    ] = 0,
    config: Annotated[str, typer.Option(metavar="FILE", help="KubeSchedulerConfiguration of the scheduler.")] = "",
) -> None:
    """Watch the scheduler at work on a cluster that plays itself.

    Pods arrive, are placed, wait with their reasons, wake up when what they waited for is there, and one of them makes
    room for a more urgent one. It needs no cluster and ends by itself in about twenty seconds, with a summary.
    """
    if pods > nodes * MOST_A_NODE:
        message = f"{pods} are too many for {nodes} nodes; at most {MOST_A_NODE} for each"
        raise typer.BadParameter(message, param_hint="--pods")
    show = Show(_unhurried(config), Crowd(nodes, pods, seed), speed, serve, port)
    try:
        asyncio.run(run(show, _Heard()))
    except (ApiError, SchedulerEndedError) as wrong:
        sys.stderr.write(f"extender: {wrong}\n")
        raise typer.Exit(_FAILED) from wrong
    except OSError as wrong:
        why = os.strerror(wrong.errno).lower() if wrong.errno else str(wrong)
        sys.stderr.write(f"extender: port {port}: {why}; choose another with --port\n")
        raise typer.Exit(_FAILED) from wrong


def _unhurried(config: str) -> wiring.Scheduling:
    """The configuration, without a bound on requests."""
    scheduling = scheduling_from(config) if config else wiring.scheduling()
    connection = msgspec.structs.replace(scheduling.configuration.client_connection, qps=-1.0)
    return replace(scheduling, configuration=replace(scheduling.configuration, client_connection=connection))
