"""The options shared by the commands that read a recorded cluster, and the functions that read their input."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from traceback import format_exception
from typing import Any, TextIO

import msgspec

from extender.analysis.coscheduling_groups import (
    convert_coscheduling_groups,
    describe_ungated_members,
    describe_unused_groups,
)
from extender.analysis.input.input_errors import (
    InputError,
    InputErrorLine,
    SourceLocation,
    UnreadableError,
    make_input_error,
)
from extender.analysis.input.input_files import read_file
from extender.analysis.pending_pods import list_pods_of_other_schedulers
from extender.analysis.pod_selection import ALL_PENDING_PODS, PodSelection
from extender.analysis.priority_classes import find_unknown_priority_classes
from extender.analysis.recorded_cluster import Recording, load_cache, read_recording
from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.pod import Pod
from extender.app import wiring
from extender.basics.visible_text import make_visible
from extender.cache.cache import Cache
from extender.cli.options import OutputFormat
from extender.cli.terminal import write_error, write_text
from extender.config.documents import dump_yaml, parse_document
from extender.config.errors import ConfigError
from extender.config.feature_gates import FeatureGates
from extender.config.feature_gates_flag import parse_feature_gates, select_scheduling_features
from extender.config.releases import find_release, is_version_of, parse_emulated_version
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.plugin_runner import PluginError
from extender.framework.profile_builder import PluginRegistry


@dataclass(frozen=True, slots=True)
class InputOptions:
    """The options of all commands that read a cluster.

    Attributes:
        config: the file of the configuration; empty: the recording's configuration, or the default configuration.
        feature_gates: the values of `--feature-gates`.
        emulated_version: the value of `--emulated-version`; empty: the release of the API server, or the nearest one.
        override: whether a later object replaces an earlier object of the same kind and name.
        document: the configuration as plain values, in place of a file.
        plugins: more plugins than those of installed packages, by name.
    """

    config: str = ""
    feature_gates: Sequence[str] = ()
    emulated_version: str = ""
    override: bool = False
    document: Mapping[str, Any] | None = None
    plugins: PluginRegistry | None = None

    @property
    def emulated_versions(self) -> list[str]:
        """The values of `--emulated-version` as a list."""
        return [self.emulated_version] if self.emulated_version else []


@dataclass(frozen=True)
class Cluster:
    """A cluster with the configuration in force."""

    recording: Recording
    setup: wiring.SchedulerSetup

    @cached_property
    def cache(self) -> Cache:
        """The cluster, loaded for questions about changes."""
        return load_cache(self.recording, self.setup.gates)


def redirect_plugin_output() -> AbstractContextManager[TextIO]:
    """Send what plugins print to standard error inside the block, so that standard output has only the result."""
    return redirect_stdout(sys.stderr)


def make_offline_runtime(*, verbose: bool) -> PluginRuntime:
    """Return a runtime that warns about slow plugins; if *verbose*, it prints each different traceback once."""
    observer = wiring.make_slow_call_observer(write_error)
    return wiring.make_runtime(observer, on_exception=_TracebackPrinter()) if verbose else wiring.make_runtime(observer)


class _TracebackPrinter:
    """Prints the tracebacks of plugin exceptions on standard error, equal ones once."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def __call__(self, error: PluginError, exception: BaseException) -> None:
        text = "".join(format_exception(exception))
        if text not in self._printed:
            self._printed.add(text)
            write_error(str(error))
            sys.stderr.write(make_visible(text))


def write_answer(
    output: OutputFormat, kind: AnswerKind, make_values: Callable[[], dict[str, Any]], format_text: Callable[[], str]
) -> None:
    """Write an answer to standard output.

    Args:
        output: the format.
        kind: the kind of the answer, which JSON and YAML contain with the version of the schema.
        make_values: the function that returns the answer as plain values, for JSON and YAML.
        format_text: the function that returns the answer as text.
    """
    match output:
        case OutputFormat.JSON:
            sys.stdout.write(msgspec.json.encode(make_answer(kind, make_values())).decode() + "\n")
        case OutputFormat.YAML:
            sys.stdout.write(dump_yaml(make_answer(kind, make_values())))
        case OutputFormat.TABLE:
            write_text(format_text())
    sys.stdout.flush()


def parse_gates_of_release(emulated_version: Iterable[str], feature_gates: Iterable[str]) -> FeatureGates:
    """Return the feature gates that the values of `--emulated-version` and `--feature-gates` select.

    Raises:
        ConfigError: the release or a feature gate is invalid.
    """
    release = parse_emulated_version(emulated_version)
    return select_scheduling_features(parse_feature_gates(feature_gates, release), release)


def parse_gates_of_recorded_release(
    kubernetes_version: str, options: InputOptions, write_note: Callable[[str], None] = write_error
) -> FeatureGates:
    """Return the feature gates of the selected release, or else of the API server's release or the nearest one.

    *kubernetes_version* is the version of the API server, such as `v1.37.2`; empty if it is unknown. *write_note* is
    called if its release cannot be emulated.

    Raises:
        ConfigError: the release or a feature gate is invalid.
    """
    release = find_release(kubernetes_version)
    if release is not None and not options.emulated_version and not is_version_of(kubernetes_version, release):
        write_note(
            f"note: the API server is {kubernetes_version}; the rules are those of kube-scheduler {release.version},"
            " the nearest release that can be emulated"
        )
    recorded_version = [release.version] if release else []
    return parse_gates_of_release([*recorded_version, *options.emulated_versions], options.feature_gates)


def read_inputs(
    files: Sequence[str], options: InputOptions, write_note: Callable[[str], None] = write_error
) -> Cluster:
    """Read the files of a recording and the configuration; write notes, for example about skipped kinds.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: a file or the configuration is invalid.
    """
    recording = read_recording(files, override=options.override)
    if errors := list(find_unknown_priority_classes(recording, recording)):
        raise InputError(errors)
    if options.document is not None:
        recording = replace(recording, config=options.document, config_location="config")
    gates = parse_gates_of_recorded_release(recording.kubernetes_version, options, write_note)
    if recording.skipped_kinds:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(recording.skipped_kinds.items()))
        write_note(f"skipped kinds that scheduling does not read: {kinds}")
    setup = load_setup_for_recording(options.config, recording, gates, write_note, options.plugins)
    if note := describe_unused_groups(recording, setup.gates):
        write_note(note)
    return Cluster(convert_coscheduling_groups(recording, setup.gates), setup)


def warn_about_other_schedulers(
    recording: Recording, scheduler_names: Collection[str], selection: PodSelection = ALL_PENDING_PODS
) -> None:
    """Print how many pods of *selection* wait for each scheduler not in *scheduler_names*, on standard error."""
    pods_of_others = filter(selection.matches, list_pods_of_other_schedulers(recording, scheduler_names))
    for name, count in sorted(Counter(pod.spec.scheduler_name for pod in pods_of_others).items()):
        pods = "1 pod is" if count == 1 else f"{count} pods are"
        write_error(f'{pods} pending for scheduler "{name}"; pass its configuration with --config')


def warn_about_ungated_members(pods: Iterable[Pod], gates: FeatureGates) -> None:
    """Print how many of *pods* are scheduled without their pod groups, on standard error."""
    if note := describe_ungated_members(pods, gates):
        write_error(note)


def load_setup_for_recording(
    config: str,
    recording: Recording,
    gates: FeatureGates,
    write_note: Callable[[str], None] = write_error,
    plugins: PluginRegistry | None = None,
) -> wiring.SchedulerSetup:
    """Load the file *config*; without it, load the recording's configuration, or else the default configuration.

    *write_note* is called with each warning about the configuration; see `wiring.build_setup` for *plugins*.

    Raises:
        InputError: the configuration cannot be read or is invalid.
    """
    if config:
        return _write_warnings(read_setup(config, gates, plugins), write_note)
    if recording.config is None:
        return wiring.build_setup(gates=gates, plugins=plugins)
    try:
        setup = wiring.build_setup_from_document(recording.config, recording.config_location, gates, plugins)
    except ConfigError as error:
        raise add_file_to_errors(error, recording.config_location) from error
    return _write_warnings(setup, write_note)


def load_setup_from_file(file: str, gates: FeatureGates | None = None) -> wiring.SchedulerSetup:
    """Load the configuration as `read_setup` does, and print its warnings on standard error."""
    return _write_warnings(read_setup(file, gates), write_error)


def read_setup(
    file: str, gates: FeatureGates | None = None, plugins: PluginRegistry | None = None
) -> wiring.SchedulerSetup:
    """Load the configuration in a file, or on standard input if *file* is `-`; see `wiring.build_setup` for *plugins*.

    Raises:
        InputError: the configuration cannot be read or is invalid.
    """
    name, data = read_text(file)
    try:
        return wiring.load_setup(data, name, gates, plugins=plugins)
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


def read_document(file: str) -> tuple[SourceLocation, Any]:
    """Read a YAML or JSON file; return its location for messages and its plain values.

    Raises:
        InputError: the file cannot be read or is invalid.
    """
    name, data = read_text(file)
    location = SourceLocation(name)
    try:
        document, errors = parse_document(data, name)
    except ConfigError as error:
        raise make_input_error("", *map(str, error.errors)) from error
    if errors:
        raise InputError(InputErrorLine(location, error.message, path=error.path) for error in errors)
    return location, document


def _write_warnings(setup: wiring.SchedulerSetup, write_note: Callable[[str], None]) -> wiring.SchedulerSetup:
    for warning in setup.warnings:
        write_note(f"note: {warning}")
    return setup


def add_file_to_errors(error: ConfigError, source: str) -> InputError:
    """Return an input error with the errors of *error*, each with the file *source*."""
    location = SourceLocation(source)
    return InputError(
        InputErrorLine(location, field_error.message.removeprefix(f"{source}: "), path=field_error.path)
        for field_error in error.errors
    )
