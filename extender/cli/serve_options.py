"""Validate the flags of `extender serve` and convert them to `ServeOptions`."""

import os
import re
from collections.abc import Iterator
from typing import Final

from extender.analysis.pending_pods import nominate_pending_pods
from extender.analysis.recorded_cluster import load_cache
from extender.app.options import ServeOptions
from extender.app.wiring import Scheduling, build_scheduling, make_runtime
from extender.cache.cache import Cache
from extender.cli.pflag import FlagError, ParsedFlags
from extender.cli.recording_options import load_scheduling_from_file, read_inputs
from extender.client.kubeconfig import CredentialSource
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates_flag import parse_feature_gates, select_scheduling_gates
from extender.extender_api.routes import VerbPaths
from extender.extender_api.score_scaling import ScoreRange
from extender.logs.klog import LoggingOptions
from extender.serving.serving_options import ServingOptions

VERBS: Final = ("filter", "prioritize", "preempt", "bind")

_SCORE_RANGES: Final = {score_range.value: score_range for score_range in ScoreRange}
_URL_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_LIVE_ONLY: Final = ("kubeconfig", "master", "standalone", "scheduler-name", "secure-port")


def make_serve_options(parsed: ParsedFlags) -> ServeOptions:
    """Return the options of the process.

    Raises:
        ConfigError: the flags or the configuration are invalid; contains all errors.
        InputError: a file cannot be read.
    """
    if parsed.arguments:
        arguments = " ".join(f'"{argument}"' for argument in parsed.arguments)
        raise FlagError(f'"extender serve" does not take any arguments, got [{arguments}]')
    paths = _make_verb_paths(parsed)
    errors = [*_validate_flags(parsed), *_validate_paths(paths)]
    if errors:
        raise ConfigError(errors)
    scheduling, cluster = _load_cluster(parsed)
    return ServeOptions(
        scheduling=scheduling,
        cluster=cluster,
        serving=ServingOptions(
            address=parsed["bind-address"],
            port=parsed["port"],
            cert_file=parsed["tls-cert-file"],
            key_file=parsed["tls-private-key-file"],
        ),
        config_file=parsed["config"] if parsed["config"] != "-" else "",
        diagnostics_serving=_make_diagnostics_options(parsed),
        client_ca_file=parsed["client-ca-file"],
        client_names=frozenset(parsed["allowed-client-names"]),
        max_body_bytes=(parsed["max-names-bytes"], parsed["max-nodes-bytes"]),
        paths=paths,
        other_scheduler_names=parsed["scheduler-name"],
        always_allowed_paths=parsed["authorization-always-allow-paths"],
        score_range=_SCORE_RANGES[parsed["score-range"]],
        standalone=parsed["standalone"],
        logs=LoggingOptions(parsed["logging-format"], parsed["v"]),
    )


def _make_diagnostics_options(parsed: ParsedFlags) -> ServingOptions | None:
    """Return the options of the second port for health, metrics and explain; None without --secure-port."""
    if not parsed["secure-port"]:
        return None
    return ServingOptions(
        port=parsed["secure-port"], cert_file=parsed["tls-cert-file"], key_file=parsed["tls-private-key-file"]
    )


def _load_cluster(parsed: ParsedFlags) -> tuple[Scheduling, CredentialSource | Cache | None]:
    """Return the profiles, with the recorded cluster, the credentials of a live cluster, or None (no cluster)."""
    if parsed["file"]:
        inputs = read_inputs(list(parsed["file"]), parsed["config"], parsed["feature-gates"])
        cache = load_cache(inputs.recording, inputs.scheduling.gates)
        for profile in inputs.scheduling.profiles.values():
            nominate_pending_pods(cache, profile, make_runtime())
        return inputs.scheduling, cache
    gates = select_scheduling_gates(parse_feature_gates(parsed["feature-gates"]))
    scheduling = (
        load_scheduling_from_file(parsed["config"], gates) if parsed["config"] else build_scheduling(gates=gates)
    )
    if parsed["without-cluster"]:
        return scheduling, None
    kubeconfig = parsed["kubeconfig"] or scheduling.configuration.client_connection.kubeconfig
    return scheduling, CredentialSource(kubeconfig=kubeconfig, master=parsed["master"], environ=dict(os.environ))


def _make_verb_paths(parsed: ParsedFlags) -> VerbPaths:
    """Join the URL prefix and the verbs' names, as kube-scheduler does.

    Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
    """
    prefix = parsed["url-prefix"].strip("/")
    base = f"/{prefix}/" if prefix else "/"
    names = {verb: parsed[f"{verb}-verb"].strip("/") for verb in VERBS}
    return VerbPaths(**{verb: base + name if name else "" for verb, name in names.items()})


def _validate_paths(paths: VerbPaths) -> Iterator[FieldError]:
    verbs_by_path: dict[str, str] = {}
    for verb in VERBS:
        path = getattr(paths, verb)
        if path and not _URL_PATH.fullmatch(path):
            yield FieldError(f"--{verb}-verb", f'"{path}" is not a path of letters, digits, ".", "_", "~" and "-"')
        elif path in verbs_by_path:
            yield FieldError(f"--{verb}-verb", f"{path} is the path of {verbs_by_path[path]} already")
        elif path:
            verbs_by_path[path] = verb
    if not verbs_by_path:
        yield FieldError("--filter-verb", "want at least one verb")


def _validate_ports(parsed: ParsedFlags) -> Iterator[FieldError]:
    for flag, zero_meaning in (("port", "takes a free one"), ("secure-port", "means none")):
        if not 0 <= parsed[flag] <= 65535:
            yield FieldError(f"--{flag}", f"{parsed[flag]} must be between 0 and 65535, inclusive; 0 {zero_meaning}")


def _validate_security(parsed: ParsedFlags) -> Iterator[FieldError]:
    if bool(parsed["tls-cert-file"]) != bool(parsed["tls-private-key-file"]):
        yield FieldError("--tls-cert-file", "want --tls-cert-file and --tls-private-key-file together, or neither")
    if parsed["client-ca-file"] and not parsed["tls-cert-file"]:
        yield FieldError("--client-ca-file", "client certificates require TLS; want --tls-cert-file as well")
    if parsed["allowed-client-names"] and not parsed["client-ca-file"]:
        yield FieldError("--allowed-client-names", "requires --client-ca-file")
    if parsed["anonymous-verbs"] and parsed["client-ca-file"]:
        yield FieldError("--anonymous-verbs", "contradicts --client-ca-file; want one of the two")
    if not (
        parsed["anonymous-verbs"] or parsed["client-ca-file"] or ServingOptions(parsed["bind-address"]).is_loopback
    ):
        address = parsed["bind-address"]
        message = (
            f"every client of {address} could call the verbs; want --client-ca-file, or --anonymous-verbs to allow it"
        )
        yield FieldError("--bind-address", message)
    if not 0 < parsed["max-names-bytes"] <= parsed["max-nodes-bytes"]:
        yield FieldError("--max-names-bytes", "want at least 1 and at most --max-nodes-bytes")


def _validate_flags(parsed: ParsedFlags) -> Iterator[FieldError]:
    yield from _validate_ports(parsed)
    yield from _validate_security(parsed)
    if parsed["score-range"] not in _SCORE_RANGES:
        yield FieldError("--score-range", f'unknown "{parsed["score-range"]}"; want {" or ".join(_SCORE_RANGES)}')
    if parsed["logging-format"] not in {"text", "json"}:
        yield FieldError("--logging-format", f'unsupported log format "{parsed["logging-format"]}"; want text or json')
    for path in parsed["authorization-always-allow-paths"]:
        if "*" in path[:-1]:
            yield FieldError("--authorization-always-allow-paths", f'only trailing * allowed in "{path}"')
    cluster_flag = "--file" if parsed["file"] else "--without-cluster" if parsed["without-cluster"] else ""
    if parsed["file"] and parsed["without-cluster"]:
        yield FieldError("--without-cluster", "contradicts --file; want one of the two")
    for name in _LIVE_ONLY:
        if cluster_flag and name in parsed.changed:
            yield FieldError(f"--{name}", f"is for a live cluster, not for {cluster_flag}")
