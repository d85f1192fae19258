"""`extender simulate`: schedule all pending pods on a copy of a recorded cluster."""

import sys
from typing import Annotated, Final, TextIO

import msgspec
import typer

from extender.analysis.recorded_cluster import load_cache
from extender.analysis.simulate import simulate as run_simulation
from extender.analysis.simulation_text import format_simulation, make_simulation_values
from extender.app import wiring
from extender.cli.recording_options import (
    ConfigFile,
    Files,
    GatesOption,
    Output,
    OutputOption,
    read_inputs,
    warn,
    warn_about_other_schedulers,
)
from extender.config.documents import dump_yaml

_EPILOG: Final = """\b
Examples:
  extender simulate -f cluster.json                             scheduled pods, pending pods, and the reasons
  extender simulate -f cluster.json --config binpack.yaml       with another configuration
  extender simulate -f cluster.json -f more-nodes.yaml          with more nodes
  extender simulate -f cluster.json.gz -o json --seed 7         all placements; another choice between equal nodes"""

_WIDTH: Final = 30

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def simulate(
    file: Files,
    config: ConfigFile = "",
    feature_gates: GatesOption = None,
    output: OutputOption = Output.TABLE,
    seed: Annotated[int, typer.Option(help="Seed of the choice between equally good nodes.")] = 0,
) -> None:
    """Schedule all pending pods, one after another in queue order, on a copy of the cluster.

    Each placed pod counts for the pods that follow. Nothing is evicted, and nothing is written anywhere. The report has
    the placed pods, the pods without a node and the reasons, the utilization of the cluster, and the fullest and
    emptiest nodes. The same seed gives the same placements.
    """
    inputs = read_inputs(file, config, feature_gates)
    progress_bar = _ProgressBar(sys.stderr) if sys.stderr.isatty() else None
    cache = load_cache(inputs.recording, inputs.scheduling.gates)
    simulation = run_simulation(
        cache,
        inputs.scheduling.profiles,
        wiring.make_runtime(wiring.make_slow_call_observer(warn)),
        seed=seed,
        progress=progress_bar.show if progress_bar is not None else None,
    )
    match output:
        case Output.JSON:
            sys.stdout.write(msgspec.json.encode(make_simulation_values(simulation, seed)).decode() + "\n")
        case Output.YAML:
            sys.stdout.write(dump_yaml(make_simulation_values(simulation, seed)))
        case Output.TABLE:
            sys.stdout.write(format_simulation(simulation, seed))
    sys.stdout.flush()
    warn_about_other_schedulers(inputs.recording, inputs.scheduling.profiles)


class _ProgressBar:
    """A progress bar on one line of a terminal, erased at the end."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._percent = -1

    def show(self, done: int, total: int) -> None:
        """Draw the bar if its percentage changed."""
        percent = 100 * done // total
        if percent == self._percent:
            return
        self._percent = percent
        filled = _WIDTH * done // total
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._terminal.write(f"\r[{bar}] {percent:3d}% {done} of {total} pods" if done < total else "\r\033[K")
        self._terminal.flush()
