"""The options of kubectl that a command lacks, with what to use in their place."""

from collections.abc import Iterable, Mapping
from typing import Final

_CREDENTIALS: Final = (
    *("--server", "-s", "--cluster", "--user", "--token", "--username", "--password"),
    *("--certificate-authority", "--client-certificate", "--client-key", "--insecure-skip-tls-verify"),
)

_SELECTION: Final = ("--namespace", "-n", "--all-namespaces", "-A", "--selector", "-l")

_ADVICE: Final[Mapping[Iterable[str], str]] = {
    ("--watch", "-w", "--watch-only"): "`extender ui` follows a cluster, and `watch` of the shell repeats a command",
    ("--no-headers", "--sort-by", "--show-labels", "--template"): "-o json has all values, for jq",
    ("--field-selector",): "without names all pending pods are meant; -n, -A and -l select among them",
    ("--as", "--as-group", "--as-uid"): "set as, as-groups and as-uid of the user in a kubeconfig, for --kubeconfig",
    _SELECTION: "this command is about the pods of all namespaces",
    _CREDENTIALS: "write it into a kubeconfig; --kubeconfig and --context select it",
    ("--ignore-daemonsets", "--delete-emptydir-data"): "leave it out; a copy of the cluster is drained without it",
    ("--dry-run",): "only rebalance --apply changes a cluster",
    ("--request-timeout",): "`timeout 30s` of the shell limits the time of a command",
}

OUTPUT_ADVICE: Final = "the table has all columns, and json has all values, for jq"
"""The advice for a value of `--output` that only kubectl has, such as `wide` or `jsonpath=...`."""


def find_advice(option: str) -> str:
    """Return what to use in place of an option of kubectl; empty for another option."""
    return next((advice for options, advice in _ADVICE.items() if option in options), "")
