"""From the flags of `extender schedule` to what the process is told: precedence as kube-scheduler has it.

A configuration file wins over the deprecated flags, and the flags of leader election over the file. Source: G049,
G050, G056.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from extender import wiring
from extender.cli.flags import FlagError, Parsed
from extender.cli.inputs import scheduling_from
from extender.cli.schedule_flags import FLAGS
from extender.client.kubeconfig import Place
from extender.config.defaults import default_configuration
from extender.config.faults import ConfigError, Fault
from extender.config.feature_flags import in_force, parse, scheduling_gates
from extender.config.gates import FeatureGates
from extender.config.model import Configuration
from extender.config.validate import validate
from extender.observe.logs import Logging
from extender.options import ScheduleOptions
from extender.web.settings import Authentication, Authorization, FrontProxy, Serving

VERSION: Final = "1.36"
"""The release of Kubernetes we behave as."""

_ELECTION: Final = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_CONNECTION: Final = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_PROFILING: Final = {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"}


def options_of(parsed: Parsed) -> ScheduleOptions:
    """What the process is told.

    Raises:
        ConfigError: everything wrong with the flags, or with the configuration.
        InputError: the configuration cannot be read.
    """
    if parsed.arguments:
        got = " ".join(f'"{word}"' for word in parsed.arguments)
        raise FlagError(f'"extender schedule" does not take any arguments, got [{got}]')
    wrong = list(_faults(parsed))
    if wrong:
        raise ConfigError(wrong)
    asked = parse(parsed["feature-gates"])
    scheduling = _scheduling(parsed, scheduling_gates(asked))
    connection = scheduling.configuration.client_connection
    return ScheduleOptions(
        scheduling=scheduling,
        place=Place(kubeconfig=connection.kubeconfig, master=parsed["master"], environ=dict(os.environ)),
        serving=_serving(parsed) if parsed["secure-port"] else None,
        authentication=_authentication(parsed),
        authorization=Authorization(
            kubeconfig=parsed["authorization-kubeconfig"],
            always_allowed=parsed["authorization-always-allow-paths"],
            allowed_seconds=parsed["authorization-webhook-cache-authorized-ttl"],
            denied_seconds=parsed["authorization-webhook-cache-unauthorized-ttl"],
        ),
        max_parked=parsed["pod-max-in-unschedulable-pods-duration"],
        logs=logging_of(parsed),
        features=in_force(asked),
        disabled_metrics=frozenset(parsed["disabled-metrics"]),
        notes=(*warnings(parsed), *scheduling.notes),
        flags={name: FLAGS[name].kind.render(parsed[name]) for name in sorted(FLAGS)},
    )


def warnings(parsed: Parsed) -> Iterator[str]:
    """What somebody should know about the flags given, a line each."""
    for name in sorted(parsed.changed):
        flag = FLAGS[name]
        if flag.deprecated:
            yield f"Flag --{name} has been deprecated, it {flag.deprecated}"
        if flag.idle:
            yield f"Flag --{name} changes nothing: {flag.idle}"


def logging_of(parsed: Parsed) -> Logging:
    """How to log."""
    modules = tuple(pattern.rpartition("=") for pattern in parsed["vmodule"])
    return Logging(parsed["logging-format"], parsed["v"], tuple((name, int(level)) for name, _, level in modules))


def _faults(parsed: Parsed) -> Iterator[Fault]:
    port = parsed["secure-port"]
    if not 0 <= port <= 65535:
        yield Fault("--secure-port", f"{port} must be between 0 and 65535, inclusive; 0 serves nothing")
    if bool(parsed["tls-cert-file"]) != bool(parsed["tls-private-key-file"]):
        yield Fault("--tls-cert-file", "want --tls-cert-file and --tls-private-key-file together, or neither")
    for path in parsed["authorization-always-allow-paths"]:
        if "*" in path[:-1]:
            yield Fault("--authorization-always-allow-paths", f'only trailing * allowed in "{path}"')
    hidden = parsed["show-hidden-metrics-for-version"]
    if hidden not in {"", "1.35"}:
        yield Fault("--show-hidden-metrics-for-version", f'"{hidden}" must be omitted or have the value 1.35')
    for written in parsed["emulated-version"]:
        component, _, version = written.rpartition("=")
        if component not in {"", "kube"}:
            yield Fault("--emulated-version", f"component not registered: {component}; want kube={VERSION}")
        elif version != VERSION:
            yield Fault("--emulated-version", f"{version} cannot be emulated; want {VERSION}")
    yield from _logging_faults(parsed)


def _logging_faults(parsed: Parsed) -> Iterator[Fault]:
    form = parsed["logging-format"]
    if form not in {"text", "json"}:
        yield Fault("--logging-format", f'unsupported log format "{form}"; want text or json')
    for pattern in parsed["vmodule"]:
        name, _, level = pattern.rpartition("=")
        if not name or not level.isascii() or not level.isdigit():
            yield Fault("--vmodule", f'"{pattern}" is not of the form pattern=N')
    if parsed["vmodule"] and form == "json":
        yield Fault("--vmodule", "only supported for text log format")
    if parsed["log-flush-frequency"] <= 0:
        yield Fault("--log-flush-frequency", "must be greater than zero")
    for name in ("log-text-split-stream", "log-json-split-stream"):
        if parsed[name]:
            yield Fault(f"--{name}", "feature LoggingAlphaOptions is disabled")


def _scheduling(parsed: Parsed, gates: FeatureGates) -> wiring.Scheduling:
    """The configuration in force, with its plugins."""
    if not parsed["config"]:
        configuration = _with_deprecated(default_configuration(), parsed)
        return wiring.scheduling(_checked(_with_election(configuration, parsed)), gates)
    scheduling = scheduling_from(parsed["config"], gates)
    configuration = _checked(_with_election(scheduling.configuration, parsed))
    return dataclasses.replace(scheduling, configuration=configuration)


def _checked(configuration: Configuration) -> Configuration:
    faults = validate(configuration)
    if faults:
        raise ConfigError(faults)
    return configuration


def _given(parsed: Parsed, names: dict[str, str]) -> dict[str, Any]:
    return {field: parsed[name] for name, field in names.items() if name in parsed.changed}


def _with_election(configuration: Configuration, parsed: Parsed) -> Configuration:
    election = msgspec.structs.replace(configuration.leader_election, **_given(parsed, _ELECTION))
    return dataclasses.replace(configuration, leader_election=election)


def _with_deprecated(configuration: Configuration, parsed: Parsed) -> Configuration:
    connection = msgspec.structs.replace(configuration.client_connection, **_given(parsed, _CONNECTION))
    return dataclasses.replace(configuration, client_connection=connection, **_given(parsed, _PROFILING))


def _serving(parsed: Parsed) -> Serving:
    return Serving(
        address=parsed["bind-address"],
        port=parsed["secure-port"],
        certificate=parsed["tls-cert-file"],
        key=parsed["tls-private-key-file"],
        folder=parsed["cert-dir"],
        least_version=parsed["tls-min-version"],
        ciphers=parsed["tls-cipher-suites"],
        share_address=parsed["permit-address-sharing"],
        share_port=parsed["permit-port-sharing"],
    )


def _authentication(parsed: Parsed) -> Authentication:
    return Authentication(
        kubeconfig=parsed["authentication-kubeconfig"],
        cache_seconds=parsed["authentication-token-webhook-cache-ttl"],
        skip_lookup=parsed["authentication-skip-lookup"],
        tolerate_failure=parsed["authentication-tolerate-lookup-failure"],
        client_authority=parsed["client-ca-file"],
        front_proxy=FrontProxy(
            authority=parsed["requestheader-client-ca-file"],
            names=parsed["requestheader-allowed-names"],
            users=parsed["requestheader-username-headers"],
            uids=parsed["requestheader-uid-headers"],
            groups=parsed["requestheader-group-headers"],
            extras=parsed["requestheader-extra-headers-prefix"],
        ),
    )
