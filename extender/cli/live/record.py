"""`extender record`: write a live cluster to a file that the other commands read."""

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from extender.analysis.input.input_errors import make_input_error
from extender.analysis.recorded_cluster import Recording
from extender.analysis.recording_writer import write_recording
from extender.analysis.required_kinds import RECORDED_KINDS, get_plural
from extender.cli import options
from extender.cli.live.cluster_options import ClusterOptions, warn_about_unreadable_kinds
from extender.cli.live.replaced_file import open_replaced_file
from extender.cli.terminal import ProgressBar, write_error

_STDOUT: Final = ("-", "/dev/stdout")
_EPILOG: Final = """\b
Examples:
  extender record -o cluster.json.gz                     the cluster of the current kubeconfig
  extender record -o cluster.json.gz --context staging   another cluster
  extender record -o - | extender explain -f -           without a file

\b
Without this program: kubectl, without pod groups and device taint rules:
  kubectl get {kinds} -A -o json | gzip > cluster.json.gz"""

KUBECTL_KINDS: Final = ",".join(get_plural(kind) for kind in RECORDED_KINDS)
"""The kinds of a complete recording, as an argument of `kubectl get`."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog=_EPILOG.format(kinds=KUBECTL_KINDS))
def record(
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="File to write, gzipped if it ends in .gz; - is stdout."),
    ],
    keep_annotations: Annotated[
        list[str] | None,
        typer.Option(
            "--keep-annotations", metavar="PREFIX", help="Also record annotations with this prefix. May be repeated."
        ),
    ] = None,
    kubeconfig: options.KubeconfigOption = "",
    context: options.ContextOption = "",
) -> None:
    """Record a live cluster to a file, for colleagues, bug reports and later questions.

    The file has the nodes and pods of all namespaces, and all other objects that scheduling reads, with the fields that
    it reads. Secrets, environment variables, commands and other annotations than those of Kubernetes are left out.
    Kinds that the user may not list are named on standard error. Answers that depend on these kinds say so.
    """
    reader: Any = import_module("extender.app.cluster_reader")
    with ProgressBar("kinds") as progress_bar:
        recording: Recording = reader.read_cluster_kinds(
            ClusterOptions(kubeconfig, context).credential_source, RECORDED_KINDS, progress_bar.show, file_hint=""
        )
    prefixes = tuple(keep_annotations or ())
    count = write_recording_file(recording, output, prefixes)
    warn_about_unreadable_kinds(recording)
    file = "" if output in _STDOUT else f" in {output}"
    write_error(f"recorded {count} objects of {recording.sources[0]}{file}")


def write_recording_file(recording: Recording, output: str, prefixes: tuple[str, ...]) -> int:
    """Write the recording. A file is replaced only if all of it was written. A device or a pipe is written to.

    Raises:
        InputError: the file cannot be written.
    """
    if output in _STDOUT:
        return write_recording(recording, sys.stdout.buffer, compress=False, annotation_prefixes=prefixes)
    try:
        with open_replaced_file(output, 0o600) as file:
            compress = output.endswith(".gz")
            return write_recording(recording, file, compress=compress, annotation_prefixes=prefixes)
    except OSError as error:
        raise make_input_error(output, f"cannot be written: {error.strerror}") from error
