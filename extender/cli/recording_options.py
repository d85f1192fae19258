"""The options shared by the commands that read a recorded cluster, and the functions that read their input."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import typer

from extender.analysis.input_errors import InputError, InputErrorLine, SourceLocation, UnreadableError
from extender.analysis.input_files import read_file
from extender.analysis.pending_pods import count_pods_of_other_schedulers
from extender.analysis.recorded_cluster import Recording, read_recording
from extender.app import wiring
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.feature_gates_flag import parse_feature_gates, select_scheduling_gates


class Output(Enum):
    """The output format."""

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
        help="KubeSchedulerConfiguration or Policy in force. Default: the one in the recording, else the built-in one.",
    ),
]
GatesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates",
        metavar="GATE=BOOL",
        help="Feature gates to enable or disable, as in kube-scheduler. May be repeated.",
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


@dataclass(frozen=True, slots=True)
class Inputs:
    """A recorded cluster with the configuration in force.

    Attributes:
        recording: the recorded cluster.
        scheduling: the configuration with its plugins.
    """

    recording: Recording
    scheduling: wiring.Scheduling


def warn(line: str) -> None:
    """Print a warning on standard error."""
    sys.stderr.write(f"extender: {line}\n")


def read_inputs(files: list[str], config: str, feature_gates: list[str] | None = None) -> Inputs:
    """Read the recording and the configuration; print the skipped kinds on standard error.

    Raises:
        ConfigError: a feature gate is invalid.
        InputError: a file or the configuration is invalid.
    """
    gates = select_scheduling_gates(parse_feature_gates(feature_gates or ()))
    recording = read_recording(files)
    if recording.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(recording.skipped.items()))
        sys.stderr.write(f"extender: skipped kinds that scheduling does not read: {kinds}\n")
    return Inputs(recording, load_scheduling_for_recording(config, recording, gates))


def warn_about_other_schedulers(recording: Recording, scheduler_names: Collection[str]) -> None:
    """Print the number of pending pods of each scheduler that is not in *scheduler_names*, on standard error."""
    for name, count in sorted(count_pods_of_other_schedulers(recording, scheduler_names).items()):
        pods = "1 pod is" if count == 1 else f"{count} pods are"
        warn(f'{pods} pending for scheduler "{name}"; pass its configuration with --config')


def load_scheduling_for_recording(config: str, recording: Recording, gates: FeatureGates) -> wiring.Scheduling:
    """Load the file *config*; without it, load the recording's configuration, or else the default configuration.

    Raises:
        InputError: the configuration cannot be read or is invalid.
    """
    if config:
        return load_scheduling_from_file(config, gates)
    if recording.config is None:
        return wiring.build_scheduling(gates=gates)
    try:
        scheduling = wiring.build_scheduling_from_builtins(recording.config, recording.config_location, gates)
    except ConfigError as error:
        raise add_file_to_errors(error, recording.config_location) from error
    return _print_warnings(scheduling)


def load_scheduling_from_file(file: str, gates: FeatureGates | None = None) -> wiring.Scheduling:
    """Load the configuration in a file, or on standard input if *file* is `-`.

    Parts of a Policy without an equivalent are printed on standard error.

    Raises:
        InputError: the configuration cannot be read or is invalid.
    """
    name, data = read_text(file)
    try:
        return _print_warnings(wiring.load_scheduling(data, name, gates))
    except ConfigError as error:
        raise add_file_to_errors(error, name) from error


def read_text(file: str) -> tuple[str, bytes]:
    """Read a file, or standard input if *file* is `-`; return its name for messages and its content.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return read_file(file, sys.stdin.buffer.read)
    except UnreadableError as error:
        raise InputError([error.error]) from error


def _print_warnings(scheduling: wiring.Scheduling) -> wiring.Scheduling:
    for warning in scheduling.warnings:
        sys.stderr.write(f"extender: note: {warning}\n")
    return scheduling


def add_file_to_errors(error: ConfigError, source: str) -> InputError:
    """Return an input error with the errors of *error*, each with the file *source*."""
    location = SourceLocation(source)
    return InputError(
        InputErrorLine(location, field_error.message.removeprefix(f"{source}: "), path=field_error.path)
        for field_error in error.errors
    )
