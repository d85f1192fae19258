"""Run an exec plugin of a kubeconfig with a limit of time and of output.

client-go waits for a plugin without a limit. Here a plugin that exceeds a limit is killed. If the plugin has no
terminal, the processes that it started are killed too.

Source: client-go/plugin/pkg/client/auth/exec/exec.go, refreshCredsLocked (1.36).
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from extender.basics.input_limits import (
    MAX_CERTIFICATE_BYTES,
    MAX_CREDENTIAL_BYTES,
    InputLimitError,
    format_size,
    read_limited_file,
    shorten,
)
from extender.client.errors import CredentialsError

EXEC_PLUGIN_SECONDS: Final = 60.0
"""The maximum duration of a plugin without a terminal, in seconds."""

INTERACTIVE_SECONDS: Final = 600.0
"""The maximum duration in seconds of a plugin with a terminal. A user may log in on the terminal."""

_EXTENSION_NAME: Final = "client.authentication.k8s.io/exec"
_CLUSTER_FIELDS: Final = (
    *("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data"),
    *("proxy-url", "disable-compression"),
)
"""The fields of a cluster that a plugin gets.

Source: client-go/pkg/apis/clientauthentication/v1/types.go, Cluster (1.37).
"""

_STANDARD_INPUT: Final = 0
_READ_BYTES: Final = 64 * 1024
_MAX_STDERR_LENGTH: Final = 500
_RUNNING: Final[dict["subprocess.Popen[bytes]", bool]] = {}
"""The running plugins, and whether each has a terminal."""


def run_exec_plugin(settings: Mapping[str, Any], base_dir: Path, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Run a plugin and return the status of its ExecCredential. Blocking.

    *settings* is the field `exec` of a user. A relative path of the command is relative to *base_dir*, the folder of
    the kubeconfig file. *cluster* is that of the context, with absolute paths, for a plugin with `provideClusterInfo`.

    Raises:
        CredentialsError: the plugin cannot be run, fails, exceeds a limit, or returns no credentials.
    """
    command = str(settings.get("command") or "")
    version = settings.get("apiVersion")
    if not command or not isinstance(version, str):
        raise CredentialsError(f"exec plugin {command}: want a command and an apiVersion")
    path = str(base_dir / command) if "/" in command and not Path(command).is_absolute() else command
    try:
        is_interactive = _is_interactive(settings.get("interactiveMode"))
        arguments = [path, *map(str, settings.get("args") or ())]
        variables = {str(entry["name"]): str(entry["value"]) for entry in settings.get("env") or ()}
        spec: dict[str, Any] = {"interactive": is_interactive}
        if settings.get("provideClusterInfo"):
            spec["cluster"] = _make_cluster_info(cluster)
        info = json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})
        environment = {**os.environ, **variables, "KUBERNETES_EXEC_INFO": info}
        output = _run(arguments, environment, str(base_dir), is_interactive=is_interactive)
        status = _parse_credential(output, version)
    except FileNotFoundError as error:
        hint = settings.get("installHint")
        raise CredentialsError(f"exec plugin {command} is not installed" + (f": {hint}" if hint else "")) from error
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CredentialsError(f"exec plugin {command}: {' '.join(str(error).split())}") from error
    if not status.get("token") and not (status.get("clientCertificateData") and status.get("clientKeyData")):
        raise CredentialsError(f"exec plugin {command} returned neither a token nor a certificate with its key")
    return status


def _is_interactive(mode: object) -> bool:
    """Return whether a plugin with this `interactiveMode` may read our standard input, which is then a terminal.

    The mode may be absent, as in `v1beta1`. client-go rejects such a plugin in `v1`.

    Raises:
        ValueError: the mode is unknown, or requires a terminal.

    Source: client-go/plugin/pkg/client/auth/exec/exec.go, isInteractive (1.36).
    """
    has_terminal = os.isatty(_STANDARD_INPUT)
    match mode:
        case "Never":
            return False
        case "IfAvailable" | "" | None:
            return has_terminal
        case "Always" if has_terminal:
            return True
        case "Always":
            raise ValueError("interactiveMode is Always, and standard input is not a terminal")
        case _:
            raise ValueError(f"unknown interactiveMode: {shorten(str(mode))}")


def _make_cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plugin gets of *cluster*; a CA in a file becomes data.

    Raises:
        OSError: the CA cannot be read.
        ValueError: the CA is too big.

    Source: client-go/rest/exec.go, ConfigToExecCluster (1.37).
    """
    info = {name: cluster[name] for name in _CLUSTER_FIELDS if cluster.get(name)}
    file = cluster.get("certificate-authority")
    if file and "certificate-authority-data" not in info:
        try:
            ca = read_limited_file(Path(file), MAX_CERTIFICATE_BYTES)
        except InputLimitError as error:
            raise ValueError(f"{file}: {error}") from error
        info["certificate-authority-data"] = b64encode(ca).decode()
    extensions = cluster.get("extensions") or ()
    configs = (entry["extension"] for entry in extensions if entry["name"] == _EXTENSION_NAME)
    return {**info, "config": next(configs, None)}


def _run(arguments: list[str], environment: dict[str, str], folder: str, *, is_interactive: bool) -> bytes:
    """Run a command and return its standard output.

    Raises:
        ValueError: the command fails or exceeds a limit.
        OSError: the command cannot be started.
    """
    has_terminal = is_interactive or (sys.stdout is not None and sys.stdout.isatty())
    process = subprocess.Popen(  # noqa: S603  the command is the user's own
        arguments,
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if has_terminal else subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=not has_terminal,  # the processes that the plugin starts are killed with it
    )
    _RUNNING[process] = has_terminal
    max_seconds = INTERACTIVE_SECONDS if has_terminal else EXEC_PLUGIN_SECONDS
    deadline = time.monotonic() + max_seconds
    try:
        output, error_output = _read_output(process, deadline)
        code = process.wait(max(deadline - time.monotonic(), 0))
    except (subprocess.TimeoutExpired, TimeoutError) as error:
        raise ValueError(f"it did not end within {max_seconds:g} s") from error
    finally:
        _end(process, has_terminal=has_terminal)
        del _RUNNING[process]
    if code:
        detail = " ".join(error_output.decode(errors="replace").split())
        raise ValueError(f"the process returned {code}. {shorten(detail, _MAX_STDERR_LENGTH)}".rstrip(". "))
    return output


def _read_output(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    """Read standard output and standard error until both are closed, and return them."""
    buffers = {"out": bytearray(), "err": bytearray()}
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0))
            if not ready or time.monotonic() > deadline:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, _READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                buffers[key.data] += data
                if len(buffers[key.data]) > MAX_CREDENTIAL_BYTES:
                    raise ValueError(f"its output has more than {format_size(MAX_CREDENTIAL_BYTES)}")
    return bytes(buffers["out"]), bytes(buffers["err"])


def kill_running_plugins() -> None:
    """Kill the plugins that run in other threads, which then fail. Call it when the event loop ends.

    The event loop waits for its threads. So a plugin that hangs would delay the end of the process by a minute.
    """
    for process, has_terminal in list(_RUNNING.items()):
        _kill(process, has_terminal=has_terminal)


def _kill(process: subprocess.Popen[bytes], *, has_terminal: bool) -> None:
    """Kill a process with the processes that it started, unless it was waited for.

    It may have ended, because the others may hold its output open.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if has_terminal:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], *, has_terminal: bool) -> None:
    """Kill a process that was not waited for, and close its pipes."""
    _kill(process, has_terminal=has_terminal)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _parse_credential(output: bytes, version: str) -> dict[str, Any]:
    """Return the status of an ExecCredential.

    Raises:
        ValueError, TypeError: the output is no ExecCredential of this version.
    """
    try:
        credential = json.loads(output)
    except RecursionError as error:
        raise ValueError("its output is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"its output is no JSON: {error}") from error
    if not isinstance(credential, dict) or credential.get("kind") != "ExecCredential":
        raise ValueError("its output is no ExecCredential")
    if credential.get("apiVersion") != version:
        raise ValueError(f"its apiVersion {credential.get('apiVersion')} does not match {version}")
    status = credential.get("status")
    if not isinstance(status, dict):
        raise TypeError("its output has no status")
    for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"):
        if not isinstance(status.get(name) or "", str):
            raise TypeError(f"status.{name}: want text")
    return status
