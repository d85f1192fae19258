"""`extender simulate`: place all waiting pods on a copy of a recorded cluster."""

import sys
from typing import Annotated, Final, TextIO

import msgspec
import typer

from extender import wiring
from extender.cli.inputs import ConfigFile, Files, GatesOption, Output, OutputOption, read_inputs, warn, warn_elsewhere
from extender.config.documents import write
from extender.offline.capture import load_state
from extender.offline.simulate import simulate as run
from extender.offline.simulation_text import text, values

_EPILOG: Final = """\b
Examples:
  extender simulate -f cluster.json                             what would be placed, what not, and why
  extender simulate -f cluster.json --config binpack.yaml       with another configuration
  extender simulate -f cluster.json -f more-nodes.yaml          with more nodes
  extender simulate -f cluster.json.gz -o json --seed 7         every placement; other choices among equals"""

_WIDTH: Final = 30

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG)
def simulate(
    file: Files,
    config: ConfigFile = "",
    feature_gates: GatesOption = None,
    output: OutputOption = Output.TABLE,
    seed: Annotated[int, typer.Option(help="Of the choice between equally good nodes.")] = 0,
) -> None:
    """Place all waiting pods, one after another in the order of the queue, on a copy of the cluster.

    What is placed counts for the pods that follow. Nothing is evicted, and nothing is written anywhere. The report says
    what was placed, what was not and why, how full the cluster gets, and which nodes are fullest and emptiest. The same
    seed gives the same placements.
    """
    inputs = read_inputs(file, config, feature_gates)
    bar = _Bar(sys.stderr) if sys.stderr.isatty() else None
    state = load_state(inputs.capture, inputs.scheduling.gates)
    simulation = run(
        state,
        inputs.scheduling.profiles,
        wiring.engine(wiring.naming_slow(warn)),
        seed=seed,
        progress=bar.show if bar is not None else None,
    )
    match output:
        case Output.JSON:
            sys.stdout.write(msgspec.json.encode(values(simulation, seed)).decode() + "\n")
        case Output.YAML:
            sys.stdout.write(write(values(simulation, seed)))
        case Output.TABLE:
            sys.stdout.write(text(simulation, seed))
    sys.stdout.flush()
    warn_elsewhere(inputs.capture, inputs.scheduling.profiles)


class _Bar:
    """A progress bar on one line of a terminal; it is wiped out at the end."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._shown = -1

    def show(self, done: int, total: int) -> None:
        """Draws the bar anew if it changes by a hundredth."""
        percent = 100 * done // total
        if percent == self._shown:
            return
        self._shown = percent
        filled = _WIDTH * done // total
        bar = "#" * filled + "." * (_WIDTH - filled)
        self._terminal.write(f"\r[{bar}] {percent:3d}% {done} of {total} pods" if done < total else "\r\033[K")
        self._terminal.flush()
