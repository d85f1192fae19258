"""The options that select a live cluster and its pods, with the meaning that they have in kubectl."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from extender.analysis.coscheduling_groups import convert_coscheduling_groups
from extender.analysis.input.input_errors import UnreadableError, make_input_error
from extender.analysis.pod_selection import PodSelection
from extender.analysis.recorded_cluster import Recording, check_nodes
from extender.analysis.required_kinds import RECORDED_KINDS, get_plural
from extender.api.kinds.node import Node
from extender.api.label_selectors import parse_label_selector
from extender.app.wiring import SchedulerSetup
from extender.cli.recording_options import (
    Cluster,
    InputOptions,
    load_setup_for_recording,
    parse_gates_of_recorded_release,
    read_inputs,
)
from extender.cli.terminal import ProgressBar, write_error
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource, load_context_namespace


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The live cluster and the pods that a command is about."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    all_namespaces: bool = False
    selector: str = ""

    @property
    def credential_source(self) -> CredentialSource:
        """The sources of the credentials."""
        return CredentialSource(self.kubeconfig, context=self.context, environ=os.environ)

    def make_selection(self, names: Sequence[str], *, live: bool) -> PodSelection:
        """Return the selected pods.

        Without *names* they are all pending pods. The context of a *live* cluster has a namespace.

        Raises:
            InputError: the label selector is invalid, or there are names too.
            UnreadableError: the kubeconfig is invalid.
        """
        if names and self.selector:
            raise make_input_error("--selector", "selects among all pending pods; leave out the names")
        try:
            labels = parse_label_selector(self.selector)
        except ValueError as error:
            raise make_input_error("--selector", f"{error}; want labels such as app=web,!old") from error
        # As in kubectl, --namespace has no effect with --all-namespaces.
        namespace = "" if self.all_namespaces else self.load_namespace() if live else self.namespace
        return PodSelection(tuple(names), namespace, labels)

    def load_namespace(self) -> str:
        """Return the value of `--namespace`, or else the namespace of the context.

        Raises:
            UnreadableError: the kubeconfig is invalid.
        """
        if self.namespace:
            return self.namespace
        try:
            return load_context_namespace(self.credential_source)
        except CredentialsError as error:
            raise UnreadableError("the cluster", f"{error}") from error

    def check_unused_with_files(self) -> None:
        """Check that no option of a live cluster is set, because the cluster is read from files.

        Raises:
            InputError: an option is set.
        """
        for option, value in (("--kubeconfig", self.kubeconfig), ("--context", self.context)):
            if value:
                raise make_input_error(option, "selects a live cluster, but -f reads a file; leave out one of them")


def read_cluster_inputs(
    files: Sequence[str] | None, input_options: InputOptions, options: ClusterOptions, names: Sequence[str] = ()
) -> tuple[Cluster, PodSelection]:
    """Read the cluster from files, or the live cluster if there are no files.

    All commands with a live cluster read it here. From a live cluster only those kinds are read on which the scheduling
    of the selected pods depends.

    Without *names*, all pending pods are selected.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: a file, the configuration or an option is invalid.
        UnreadableError: the live cluster cannot be read.
    """
    selection = options.make_selection(names, live=not files)
    if files:
        options.check_unused_with_files()
        cluster = read_inputs(files, input_options)
        if not any(isinstance(item, Node) for item in cluster.recording.objects):
            write_error("note: no file has a node; add -f with a recording, or ask the live cluster without -f")
        return cluster, selection
    return _read_live_cluster(input_options, options, selection), selection


def read_cluster(
    files: Sequence[str] | None, input_options: InputOptions, options: ClusterOptions | None = None
) -> Cluster:
    """Read the cluster from files, or all recorded kinds of the live cluster if there are no files.

    All planning commands read their cluster here. Without *options*, it is that of the current kubeconfig.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: a file, the configuration or an option is invalid.
        UnreadableError: the live cluster cannot be read.
    """
    options = options or ClusterOptions()
    if files:
        options.check_unused_with_files()
        cluster = read_inputs(files, input_options)
        check_nodes(cluster.recording)
        return cluster

    cluster = _read_live_cluster(input_options, options, None)
    warn_about_unreadable_kinds(cluster.recording)
    return cluster


def warn_about_unreadable_kinds(recording: Recording) -> None:
    """Print each kind that the user may not list, with the reason, on standard error."""
    for kind, reason in sorted(recording.unreadable_kinds.items()):
        write_error(f"not readable: {get_plural(kind)}; {reason}")


def _read_live_cluster(input_options: InputOptions, options: ClusterOptions, selection: PodSelection | None) -> Cluster:
    """Read the kinds on which the scheduling of the selected pods depends; without *selection*, all recorded kinds."""
    # The client of the API server is imported only here: commands on files start in less time without it.
    cluster_reader: Any = import_module("extender.app.cluster_reader")
    setup, source = load_setup_for_live_cluster(input_options, options), options.credential_source
    with ProgressBar("kinds") as progress_bar:
        if selection is None:
            recording = cluster_reader.read_cluster_kinds(source, RECORDED_KINDS, progress_bar.show)
        else:
            recording = cluster_reader.read_cluster_for_pods(source, selection, setup.profiles, progress_bar.show)
    for note in recording.notes:
        write_error(f"note: {note}")
    return Cluster(convert_coscheduling_groups(recording, setup.gates), setup)


def load_setup_for_live_cluster(input_options: InputOptions, options: ClusterOptions) -> SchedulerSetup:
    """Load the configuration. Without `--emulated-version` the release is that of the API server.

    Raises:
        ConfigError: the release or a feature gate is invalid.
        InputError: the configuration is invalid.
        UnreadableError: the release of the live cluster cannot be read.
    """
    cluster_reader: Any = import_module("extender.app.cluster_reader")
    is_selected = bool(input_options.emulated_version)
    server_version = "" if is_selected else cluster_reader.read_kubernetes_version(options.credential_source)
    gates = parse_gates_of_recorded_release(server_version, input_options)
    return load_setup_for_recording(input_options.config, Recording(), gates)
