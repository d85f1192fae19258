"""Validate the flags of `extender serve` and convert them to `ServeOptions`."""

import os
import re
from collections.abc import Iterator
from typing import Final

from extender.analysis.pending_pods import nominate_pending_pods
from extender.analysis.recorded_cluster import load_cache
from extender.app.options import ServeOptions
from extender.app.wiring import SchedulerSetup, build_setup, make_runtime
from extender.cache.cache import Cache
from extender.cli.pflag import ParsedFlags
from extender.cli.recording_options import (
    InputOptions,
    add_file_to_errors,
    parse_gates_of_release,
    read_inputs,
    read_setup,
)
from extender.cli.schedule_options import check_no_arguments, validate_shared_flags
from extender.client.kubeconfig import CredentialSource
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates import FeatureGates
from extender.extender_api.best_node.caller_configuration import describe_best_node_effects, list_score_plugins
from extender.extender_api.best_node.choice import FilterAnswer
from extender.extender_api.request_limits import RequestLimits
from extender.extender_api.routes import VerbPaths
from extender.extender_api.score_scaling import ScoreRange
from extender.logs.klog import LoggingOptions
from extender.serving.serving_options import ServingOptions
from extender.ui.mounted_pages import find_pattern_of_pages

VERBS: Final = ("filter", "prioritize", "preempt", "bind")

_SCORE_RANGES: Final = {score_range.value: score_range for score_range in ScoreRange}
_FILTER_ANSWERS: Final = {answer.value: answer for answer in FilterAnswer}
_URL_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_LIVE_ONLY: Final = ("kubeconfig", "master", "standalone", "scheduler-name", "secure-port")


def make_serve_options(parsed_flags: ParsedFlags) -> ServeOptions:
    """Return the options of the process.

    Raises:
        ConfigError: the flags or the configuration are invalid; contains all errors.
        InputError: a file cannot be read.
    """
    check_no_arguments(parsed_flags, "extender serve")
    paths = _make_verb_paths(parsed_flags)
    errors = [*_validate_flags(parsed_flags), *_validate_paths(paths)]
    if errors:
        raise ConfigError(errors)
    notes: list[str] = []
    setup, cluster = _load_cluster(parsed_flags, notes)
    return ServeOptions(
        setup=setup,
        cluster=cluster,
        serving=ServingOptions(
            address=parsed_flags["bind-address"],
            port=parsed_flags["port"],
            cert_file=parsed_flags["tls-cert-file"],
            key_file=parsed_flags["tls-private-key-file"],
        ),
        config_file=parsed_flags["config"] if parsed_flags["config"] != "-" else "",
        diagnostics_serving=_make_diagnostics_options(parsed_flags),
        client_ca_file=parsed_flags["client-ca-file"],
        client_names=frozenset(parsed_flags["allowed-client-names"]),
        request_limits=RequestLimits(
            parsed_flags["max-names-bytes"],
            parsed_flags["max-nodes-bytes"],
            parsed_flags["max-nodes"],
            parsed_flags["max-victims"],
        ),
        paths=paths,
        other_scheduler_names=parsed_flags["scheduler-name"],
        always_allowed_paths=parsed_flags["authorization-always-allow-paths"],
        score_range=_SCORE_RANGES[parsed_flags["score-range"]],
        standalone=parsed_flags["standalone"],
        filter_answer=_FILTER_ANSWERS[parsed_flags["filter-answer"]],
        assume_timeout_seconds=parsed_flags["assume-timeout"],
        start_lines=(*notes, *_describe_best_node_effects(parsed_flags, setup.gates)),
        logs=LoggingOptions(parsed_flags["logging-format"], parsed_flags["v"]),
        serves_ui=parsed_flags["ui"],
    )


def _make_diagnostics_options(parsed_flags: ParsedFlags) -> ServingOptions | None:
    """Return the options of the second port for health, metrics and explain; None without --secure-port."""
    if not parsed_flags["secure-port"]:
        return None
    return ServingOptions(
        port=parsed_flags["secure-port"],
        cert_file=parsed_flags["tls-cert-file"],
        key_file=parsed_flags["tls-private-key-file"],
    )


def _load_cluster(
    parsed_flags: ParsedFlags, notes: list[str]
) -> tuple[SchedulerSetup, CredentialSource | Cache | None]:
    """Return the profiles and the cluster: a recorded one, the credentials of a live one, or None for no cluster.

    Notes about the configuration and the recording are added to *notes*.
    """
    if parsed_flags["file"]:
        options = InputOptions(
            parsed_flags["config"],
            parsed_flags["feature-gates"],
            ",".join(parsed_flags["emulated-version"]),
            parsed_flags["override"],
        )
        inputs = read_inputs(parsed_flags["file"], options, lambda note: notes.append(note.removeprefix("note: ")))
        cache = load_cache(inputs.recording, inputs.setup.gates)
        for profile in inputs.setup.profiles.values():
            nominate_pending_pods(cache, profile, make_runtime())
        return inputs.setup, cache
    gates = parse_gates_of_release(parsed_flags["emulated-version"], parsed_flags["feature-gates"])
    setup = read_setup(parsed_flags["config"], gates) if parsed_flags["config"] else build_setup(gates=gates)
    notes += setup.warnings
    if parsed_flags["without-cluster"]:
        return setup, None
    kubeconfig = parsed_flags["kubeconfig"] or setup.configuration.client_connection.kubeconfig
    return setup, CredentialSource(kubeconfig=kubeconfig, master=parsed_flags["master"], environ=dict(os.environ))


def _describe_best_node_effects(parsed_flags: ParsedFlags, gates: FeatureGates) -> tuple[str, ...]:
    """Return lines about the plugins and extenders that kube-scheduler does not call if filter answers one node.

    Raises:
        InputError: the file cannot be read, or the configuration is invalid or contradicts the answer of filter.
    """
    if parsed_flags["filter-answer"] != FilterAnswer.BEST.value:
        return ()
    if not parsed_flags["kube-scheduler-config"]:
        return (
            "Filter leaves one node: kube-scheduler calls neither its Score plugins nor prioritize of any extender",
        )
    file = parsed_flags["kube-scheduler-config"]
    setup = read_setup(file, gates)
    score_plugins = list_score_plugins(setup.profiles)
    try:
        effects = describe_best_node_effects(setup.configuration, score_plugins, port=parsed_flags["port"])
    except ConfigError as error:
        raise add_file_to_errors(error, file) from error
    return (*setup.warnings, *effects)


def _make_verb_paths(parsed_flags: ParsedFlags) -> VerbPaths:
    """Join the URL prefix and the verbs' names, as kube-scheduler does.

    Source: pkg/scheduler/extender.go, HTTPExtender.send (1.36).
    """
    prefix = parsed_flags["url-prefix"].strip("/")
    base = f"/{prefix}/" if prefix else "/"
    names = {verb: parsed_flags[f"{verb}-verb"].strip("/") for verb in VERBS}
    is_open = parsed_flags["anonymous-verbs"] and not ServingOptions(parsed_flags["bind-address"]).is_loopback
    if parsed_flags["file"] or parsed_flags["without-cluster"] or is_open:
        names["bind"] = ""  # it is not served: it needs a live cluster and known callers
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


def _validate_security(parsed: ParsedFlags) -> Iterator[FieldError]:
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
    for flag in ("max-nodes", "max-victims"):
        if parsed[flag] < 1:
            yield FieldError(f"--{flag}", f"{parsed[flag]} must be at least 1")


def _validate_ui(parsed: ParsedFlags) -> Iterator[FieldError]:
    if not parsed["ui"]:
        return
    if parsed["without-cluster"]:
        yield FieldError("--ui", "the pages show a cluster; leave out --without-cluster")
    address, is_second_port_open = parsed["bind-address"], bool(parsed["secure-port"])
    if ServingOptions(address).is_loopback and not is_second_port_open:
        return
    if parsed["file"] and not parsed["client-ca-file"]:
        yield FieldError("--ui", f"every client of {address} could read the pages; want a loopback --bind-address")
    pattern = find_pattern_of_pages(parsed["authorization-always-allow-paths"])
    if pattern:
        message = f'every client could read the pages; leave out "{pattern}" or --ui'
        yield FieldError("--authorization-always-allow-paths", message)


def _validate_filter_answer(parsed: ParsedFlags) -> Iterator[FieldError]:
    answer = parsed["filter-answer"]
    if answer not in _FILTER_ANSWERS:
        yield FieldError("--filter-answer", f'unknown "{answer}"; want {" or ".join(_FILTER_ANSWERS)}')
    if parsed["assume-timeout"] <= 0:
        yield FieldError("--assume-timeout", "must be greater than 0")
    if answer != FilterAnswer.BEST.value:
        if "assume-timeout" in parsed.changed:
            yield FieldError("--assume-timeout", "has no effect without --filter-answer=best")
        if parsed["kube-scheduler-config"]:
            yield FieldError("--kube-scheduler-config", "has no effect without --filter-answer=best")
        return
    if not parsed["filter-verb"]:
        yield FieldError("--filter-answer", "best requires the verb filter; leave out --filter-verb")
    if parsed["without-cluster"]:
        yield FieldError("--filter-answer", "best requires a cluster; leave out --without-cluster")
    if parsed["anonymous-verbs"]:
        yield FieldError("--filter-answer", "best contradicts --anonymous-verbs: every client could assume pods")
    if parsed["standalone"]:
        yield FieldError(
            "--filter-answer", "best contradicts --standalone: the scheduler and the caller would place the same pods"
        )


def _validate_flags(parsed: ParsedFlags) -> Iterator[FieldError]:
    for flag, meaning_of_zero in (("port", "takes a free one"), ("secure-port", "means none")):
        if not 0 <= parsed[flag] <= 65535:
            yield FieldError(f"--{flag}", f"{parsed[flag]} must be between 0 and 65535, inclusive; 0 {meaning_of_zero}")
    yield from validate_shared_flags(parsed)
    yield from _validate_security(parsed)
    yield from _validate_ui(parsed)
    yield from _validate_filter_answer(parsed)
    if parsed["score-range"] not in _SCORE_RANGES:
        yield FieldError("--score-range", f'unknown "{parsed["score-range"]}"; want one of {", ".join(_SCORE_RANGES)}')
    cluster_flag = "--file" if parsed["file"] else "--without-cluster" if parsed["without-cluster"] else ""
    if parsed["file"] and parsed["without-cluster"]:
        yield FieldError("--without-cluster", "contradicts --file; want one of the two")
    for name in _LIVE_ONLY:
        if cluster_flag and name in parsed.changed:
            yield FieldError(f"--{name}", f"is for a live cluster, not for {cluster_flag}")
