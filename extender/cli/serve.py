"""`extender serve`: the extender verbs over HTTP, for a cluster from a file."""

import errno
import gc
import os
import socket
import sys
from typing import Annotated, Final

import typer

from extender import wiring
from extender.cli.inputs import ConfigFile, Files, Inputs, read_inputs, warn
from extender.decide.engine import Engine
from extender.observe.metrics import PluginMetrics, exposition, new_registry
from extender.observe.verbs import VerbMetrics
from extender.offline.capture import load_state
from extender.offline.checks import problems
from extender.offline.defaulting import completed
from extender.offline.waiting import nominate_waiting
from extender.web.app import Site, new_app
from extender.web.health import Health
from extender.web.scaling import ScoreRange
from extender.web.serving import listening, serve, url
from extender.web.verbs import Intake, Verbs

_FAILED: Final = 1

_EPILOG: Final = """\b
Examples:
  extender serve -f cluster.json
  extender serve -f cluster.json --config scheduler.yaml --bind-address 0.0.0.0 --port 9000
  curl http://127.0.0.1:8888/readyz?verbose
  curl --data '{"Pod": ..., "NodeNames": ["node-1", "node-2"]}' http://127.0.0.1:8888/filter"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


def site_of(inputs: Inputs, score_range: ScoreRange = ScoreRange.TEN) -> Site:
    """Everything that is served about a recorded cluster."""
    state = load_state(inputs.capture)
    scheduling = inputs.scheduling
    registry = new_registry()
    seen = VerbMetrics(registry)
    observer = wiring.naming_slow(warn, PluginMetrics(registry, list(scheduling.profiles)))
    engine: Engine = wiring.engine(observer)
    for profile in scheduling.profiles.values():
        nominate_waiting(state, profile, engine)
    verbs = Verbs(
        state,
        scheduling.profiles,
        scheduling.first,
        engine,
        wiring.engine(observer, keep=False),
        Intake(completed, problems),
        score_range,
        seen,
    )
    return Site(verbs, Health(), seen, lambda: exposition(registry))


def _told(fault: OSError) -> str:
    """What keeps us from listening, in the system's words, and the way out where there is one."""
    if isinstance(fault, socket.gaierror) or not fault.errno:
        return f"{fault.strerror or fault}; want an address of this machine"
    words = os.strerror(fault.errno).lower()
    return f"{words}; choose another with --port" if fault.errno == errno.EADDRINUSE else words


@app.command(name="serve", epilog=_EPILOG)
def command(
    file: Files,
    config: ConfigFile = "",
    bind_address: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="0 takes a free one.")] = 8888,
    score_range: Annotated[
        ScoreRange,
        typer.Option(help="What prioritize answers: scores as kube-scheduler takes them, or the profile's totals."),
    ] = ScoreRange.TEN,
) -> None:
    """Answer the extender verbs filter, prioritize and preempt over HTTP, for a cluster from a file.

    POST /filter and /prioritize take what kube-scheduler sends an extender: a pod, with names of nodes or whole nodes;
    POST /preempt a pod with the victims on each node.
    GET /livez, /healthz, /readyz, /metrics and /openapi.json are there too. SIGTERM and Ctrl-C finish what is being
    answered and end the process with status 0.
    """
    inputs = read_inputs(file, config)
    site = site_of(inputs, score_range)
    try:
        listener = listening(bind_address, port)
    except OSError as fault:
        sys.stderr.write(f"extender: cannot listen on {bind_address} port {port}: {_told(fault)}\n")
        raise typer.Exit(_FAILED) from fault
    # The cluster stays for as long as the process; the cycle collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    nodes, pods = len(site.verbs.state.snapshot()), len(site.verbs.state.placed)
    sys.stderr.write(
        f"extender: filter, prioritize and preempt at {url(listener)} for {nodes} nodes with {pods} pods\n"
    )
    sys.stderr.flush()
    with listener:
        serve(new_app(site), listener, site.health)
