"""The names that a shell completes: those of the objects in the live cluster, or in a small recording."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from extender.analysis.input.input_errors import InputError, UnreadableError
from extender.analysis.recorded_cluster import read_recording
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod

_KUBECTL_TIMEOUT_SECONDS: Final = 5.0
_MAX_FILE_BYTES: Final = 2_000_000
"""A larger recording takes too long to read for a completion."""


def list_live_names(resource: str, flags: Sequence[str]) -> list[str]:
    """Return the names of the objects that kubectl lists; none if kubectl fails.

    *resource* is the plural of the resource; *flags* select the cluster and the namespace.
    """
    lines = _list_lines("get", resource, "--output=name", "--request-timeout=3s", *flags)
    return [line.partition("/")[2] for line in lines]


def _list_lines(*arguments: str) -> list[str]:
    """Return the names that kubectl prints, one a line; none if kubectl fails."""
    command = ["kubectl", *arguments]
    try:
        result = subprocess.run(  # noqa: S603  kubectl of the user, with the user's own flags
            command, capture_output=True, text=True, timeout=_KUBECTL_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return result.stdout.splitlines()


def complete(resource: str, options: dict[str, Any], incomplete: str) -> list[str]:
    """Return the names that begin with *incomplete*, of the cluster that the *options* of a command select.

    *resource* is the plural of the resource, or `contexts` for the contexts of the kubeconfig.
    """
    flags_by_name = {
        name: f"--{name}={options[name]}" for name in ("kubeconfig", "context", "namespace") if options.get(name)
    }
    if resource == "contexts":
        flags = [flags_by_name["kubeconfig"]] if "kubeconfig" in flags_by_name else []
        names = _list_lines("config", "get-contexts", "--output=name", *flags)
    elif files := options.get("file"):
        names = list_recorded_names(resource, files)
    else:
        if resource == "namespaces":
            flags_by_name.pop("namespace", None)
        names = list_live_names(resource, list(flags_by_name.values()))
    return [name for name in names if name.startswith(incomplete)]


def list_recorded_names(resource: str, files: Sequence[str]) -> list[str]:
    """Return the recorded names of a resource; none if a file is large or invalid.

    They are `namespace/name` for pods, and for namespaces those of the pods.
    """
    try:
        if any(Path(file).stat().st_size > _MAX_FILE_BYTES for file in files):
            return []
        objects = read_recording(list(files)).objects
    except (OSError, InputError, UnreadableError):
        return []
    if resource == "nodes":
        return [obj.metadata.name for obj in objects if isinstance(obj, Node)]
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    return [pod.key for pod in pods] if resource == "pods" else sorted({pod.metadata.namespace for pod in pods})
