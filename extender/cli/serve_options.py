"""From the flags of `extender serve` to what the process is told."""

import os
import re
from collections.abc import Iterator
from typing import Final

from extender.cli.flags import FlagError, Parsed
from extender.cli.inputs import read_inputs, scheduling_from
from extender.client.kubeconfig import Place
from extender.cluster.state import ClusterState
from extender.config.faults import ConfigError, Fault
from extender.config.feature_flags import parse, scheduling_gates
from extender.observe.logs import Logging
from extender.offline.capture import load_state
from extender.offline.waiting import nominate_waiting
from extender.options import ServeOptions
from extender.web.app import Paths
from extender.web.scaling import ScoreRange
from extender.web.settings import Serving
from extender.wiring import Scheduling, engine, scheduling

VERBS: Final = ("filter", "prioritize", "preempt", "bind")

_RANGES: Final = {each.value: each for each in ScoreRange}
_SEGMENTS: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_LIVE_ONLY: Final = ("kubeconfig", "master", "standalone", "scheduler-name", "secure-port")


def options_of(parsed: Parsed) -> ServeOptions:
    """What the process is told.

    Raises:
        ConfigError: everything wrong with the flags, or with the configuration.
        InputError: a file cannot be read.
    """
    if parsed.arguments:
        got = " ".join(f'"{word}"' for word in parsed.arguments)
        raise FlagError(f'"extender serve" does not take any arguments, got [{got}]')
    paths = _paths(parsed)
    wrong = [*_faults(parsed), *_path_faults(paths)]
    if wrong:
        raise ConfigError(wrong)
    chosen, cluster = _cluster(parsed)
    return ServeOptions(
        scheduling=chosen,
        cluster=cluster,
        serving=Serving(
            address=parsed["bind-address"],
            port=parsed["port"],
            certificate=parsed["tls-cert-file"],
            key=parsed["tls-private-key-file"],
        ),
        config=parsed["config"] if parsed["config"] != "-" else "",
        pages=_pages(parsed),
        client_authority=parsed["client-ca-file"],
        client_names=frozenset(parsed["allowed-client-names"]),
        most_bytes=(parsed["max-names-bytes"], parsed["max-nodes-bytes"]),
        paths=paths,
        others=parsed["scheduler-name"],
        always_allowed=parsed["authorization-always-allow-paths"],
        score_range=_RANGES[parsed["score-range"]],
        standalone=parsed["standalone"],
        logs=Logging(parsed["logging-format"], parsed["v"]),
    )


def _pages(parsed: Parsed) -> Serving | None:
    """Where health and metrics are served beside the verbs."""
    if not parsed["secure-port"]:
        return None
    return Serving(port=parsed["secure-port"], certificate=parsed["tls-cert-file"], key=parsed["tls-private-key-file"])


def _cluster(parsed: Parsed) -> tuple[Scheduling, Place | ClusterState | None]:
    """The profiles, and the cluster they answer about."""
    if parsed["file"]:
        inputs = read_inputs(list(parsed["file"]), parsed["config"], parsed["feature-gates"])
        state = load_state(inputs.capture, inputs.scheduling.gates)
        for profile in inputs.scheduling.profiles.values():
            nominate_waiting(state, profile, engine())
        return inputs.scheduling, state
    gates = scheduling_gates(parse(parsed["feature-gates"]))
    chosen = scheduling_from(parsed["config"], gates) if parsed["config"] else scheduling(gates=gates)
    if parsed["without-cluster"]:
        return chosen, None
    named = parsed["kubeconfig"] or chosen.configuration.client_connection.kubeconfig
    return chosen, Place(kubeconfig=named, master=parsed["master"], environ=dict(os.environ))


def _paths(parsed: Parsed) -> Paths:
    """A name and its place, joined as kube-scheduler does. Source: F013."""
    prefix = parsed["url-prefix"].strip("/")
    before = f"/{prefix}/" if prefix else "/"
    named = {verb: parsed[f"{verb}-verb"].strip("/") for verb in VERBS}
    return Paths(**{verb: before + name if name else "" for verb, name in named.items()})


def _path_faults(paths: Paths) -> Iterator[Fault]:
    taken: dict[str, str] = {}
    for verb in VERBS:
        path = getattr(paths, verb)
        if path and not _SEGMENTS.fullmatch(path):
            yield Fault(f"--{verb}-verb", f'"{path}" is no path of letters, digits, ".", "_", "~" and "-"')
        elif path in taken:
            yield Fault(f"--{verb}-verb", f"{path} is where {taken[path]} is served already")
        elif path:
            taken[path] = verb
    if not taken:
        yield Fault("--filter-verb", "no verb is left to be served")


def _port_faults(parsed: Parsed) -> Iterator[Fault]:
    for flag, zero in (("port", "takes a free one"), ("secure-port", "means none")):
        if not 0 <= parsed[flag] <= 65535:
            yield Fault(f"--{flag}", f"{parsed[flag]} must be between 0 and 65535, inclusive; 0 {zero}")


def _safety_faults(parsed: Parsed) -> Iterator[Fault]:
    if bool(parsed["tls-cert-file"]) != bool(parsed["tls-private-key-file"]):
        yield Fault("--tls-cert-file", "want --tls-cert-file and --tls-private-key-file together, or neither")
    if parsed["client-ca-file"] and not parsed["tls-cert-file"]:
        yield Fault("--client-ca-file", "certificates of clients need TLS; want --tls-cert-file as well")
    if parsed["allowed-client-names"] and not parsed["client-ca-file"]:
        yield Fault("--allowed-client-names", "say nothing without --client-ca-file")
    if parsed["anonymous-verbs"] and parsed["client-ca-file"]:
        yield Fault("--anonymous-verbs", "contradicts --client-ca-file; want one of the two")
    if not (parsed["anonymous-verbs"] or parsed["client-ca-file"] or Serving(parsed["bind-address"]).local):
        where = parsed["bind-address"]
        why = f"everybody who reaches {where} could ask; want --client-ca-file, or --anonymous-verbs if that is meant"
        yield Fault("--bind-address", why)
    if not 0 < parsed["max-names-bytes"] <= parsed["max-nodes-bytes"]:
        yield Fault("--max-names-bytes", "want at least 1 and at most --max-nodes-bytes")


def _faults(parsed: Parsed) -> Iterator[Fault]:
    yield from _port_faults(parsed)
    yield from _safety_faults(parsed)
    if parsed["score-range"] not in _RANGES:
        yield Fault("--score-range", f'unknown "{parsed["score-range"]}"; want {" or ".join(_RANGES)}')
    if parsed["logging-format"] not in {"text", "json"}:
        yield Fault("--logging-format", f'unsupported log format "{parsed["logging-format"]}"; want text or json')
    for path in parsed["authorization-always-allow-paths"]:
        if "*" in path[:-1]:
            yield Fault("--authorization-always-allow-paths", f'only trailing * allowed in "{path}"')
    instead = "--file" if parsed["file"] else "--without-cluster" if parsed["without-cluster"] else ""
    if parsed["file"] and parsed["without-cluster"]:
        yield Fault("--without-cluster", "there is one in --file; want one of the two")
    for name in _LIVE_ONLY:
        if instead and name in parsed.changed:
            yield Fault(f"--{name}", f"is for a live cluster, not for {instead}")
