"""What the commands that work on a recorded cluster have in common: their options, and how the input is read."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import typer

from extender import wiring
from extender.config.faults import ConfigError
from extender.config.feature_flags import parse, scheduling_gates
from extender.config.gates import FeatureGates
from extender.offline.capture import Capture, read_capture
from extender.offline.faults import InputError, InputFault, Place, UnreadableError
from extender.offline.reading import read
from extender.offline.waiting import elsewhere


class Output(Enum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Files = Annotated[
    list[str],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="Recorded cluster: YAML or JSON, plain or gzipped; - is standard input. May be repeated.",
    ),
]
ConfigFile = Annotated[
    str,
    typer.Option(
        "--config",
        metavar="FILE",
        help="KubeSchedulerConfiguration or Policy in force. Without it the recording's own, else the default one.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=BOOL",
        help="Features of kube-scheduler to switch on or off, as it takes them. May be repeated.",
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")]


@dataclass(frozen=True, slots=True)
class Inputs:
    """A recorded cluster with the configuration in force."""

    capture: Capture
    scheduling: wiring.Scheduling


def warn(line: str) -> None:
    """Says on standard error what somebody should know, though all goes on."""
    sys.stderr.write(f"extender: {line}\n")


def read_inputs(files: list[str], config: str, feature_gates: list[str] | None = None) -> Inputs:
    """Reads the recording and the configuration; tells on standard error what kinds were skipped.

    Raises:
        ConfigError: the feature gates cannot be used.
        InputError: a file or the configuration cannot be used.
    """
    gates = scheduling_gates(parse(feature_gates or ()))
    capture = read_capture(files)
    if capture.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(capture.skipped.items()))
        sys.stderr.write(f"extender: skipped what scheduling does not read: {kinds}\n")
    return Inputs(capture, scheduling_of(config, capture, gates))


def warn_elsewhere(capture: Capture, schedulers: Collection[str]) -> None:
    """Says on standard error how many pods wait for others than *schedulers*, whose pods were asked about."""
    for name, count in sorted(elsewhere(capture, schedulers).items()):
        pods = "1 pod waits" if count == 1 else f"{count} pods wait"
        warn(f'{pods} for scheduler "{name}"; name its configuration with --config')


def scheduling_of(config: str, capture: Capture, gates: FeatureGates) -> wiring.Scheduling:
    """The configuration in the file *config*; if that is empty the recording's, else the default one.

    Raises:
        InputError: the configuration cannot be read or used.
    """
    if config:
        return scheduling_from(config, gates)
    if capture.config is None:
        return wiring.scheduling(gates=gates)
    try:
        return _noted(wiring.from_builtins(capture.config, capture.config_place, gates))
    except ConfigError as error:
        raise located(error, capture.config_place) from error


def scheduling_from(file: str, gates: FeatureGates | None = None) -> wiring.Scheduling:
    """The configuration in a file, or on standard input if that is `-`.

    Of a Policy, what has no equal is told on standard error.

    Raises:
        InputError: it cannot be read or used.
    """
    name, data = read_text(file)
    try:
        return _noted(wiring.from_file(data, name, gates))
    except ConfigError as error:
        raise located(error, name) from error


def read_text(file: str) -> tuple[str, bytes]:
    """What is in a file, or on standard input if that is `-`, and how to call it in messages.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return read(file, sys.stdin.buffer.read)
    except UnreadableError as error:
        raise InputError([error.fault]) from error


def _noted(scheduling: wiring.Scheduling) -> wiring.Scheduling:
    for note in scheduling.notes:
        sys.stderr.write(f"extender: note: {note}\n")
    return scheduling


def located(error: ConfigError, source: str) -> InputError:
    """The same faults, each with the file it is in."""
    place = Place(source)
    return InputError(
        InputFault(place, fault.message.removeprefix(f"{source}: "), path=fault.path) for fault in error.faults
    )
