"""Validate the flags of `extender schedule` and convert them to `ScheduleOptions`.

A configuration file overrides the deprecated flags; the flags of leader election override the file.

Source: cmd/kube-scheduler/app/options/deprecated.go, DeprecatedOptions.AddFlags;
cmd/kube-scheduler/app/options/options.go, Options.ApplyLeaderElectionTo, Options.ApplyTo (1.36).
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from extender.app import wiring
from extender.app.options import ScheduleOptions
from extender.cli.pflag import FlagError, ParsedFlags
from extender.cli.recording_options import read_setup
from extender.cli.schedule_flags import FLAGS
from extender.client.kubeconfig import CredentialSource
from extender.config.defaults import make_default_configuration
from extender.config.errors import ConfigError, FieldError
from extender.config.feature_gates import FeatureGates
from extender.config.feature_gates_flag import (
    get_values_by_gate_and_stage,
    parse_feature_gates,
    select_scheduling_features,
)
from extender.config.model import Configuration
from extender.config.releases import parse_emulated_version
from extender.config.validation import validate_configuration
from extender.logs.klog import LoggingOptions
from extender.serving.serving_options import (
    AuthenticationOptions,
    AuthorizationOptions,
    FrontProxyOptions,
    ServingOptions,
)
from extender.ui.mounted_pages import find_pattern_of_pages

_LEADER_ELECTION_FIELDS: Final = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_CLIENT_CONNECTION_FIELDS: Final = {
    "kubeconfig": "kubeconfig",
    "kube-api-content-type": "content_type",
    "kube-api-qps": "qps",
    "kube-api-burst": "burst",
}
_PROFILING_FIELDS: Final = {"profiling": "enable_profiling", "contention-profiling": "enable_contention_profiling"}


def make_schedule_options(parsed_flags: ParsedFlags) -> ScheduleOptions:
    """Return the options of the process.

    Raises:
        ConfigError: the flags or the configuration are invalid; contains all errors.
        InputError: the configuration cannot be read.
    """
    check_no_arguments(parsed_flags, "extender schedule")
    errors = list(_validate_flags(parsed_flags))
    if errors:
        raise ConfigError(errors)
    release = parse_emulated_version(parsed_flags["emulated-version"])
    feature_gates = parse_feature_gates(parsed_flags["feature-gates"], release)
    setup = _build_setup(parsed_flags, select_scheduling_features(feature_gates, release))
    connection = setup.configuration.client_connection
    return ScheduleOptions(
        setup=setup,
        credential_source=CredentialSource(
            kubeconfig=connection.kubeconfig, master=parsed_flags["master"], environ=dict(os.environ)
        ),
        serving=_make_serving_options(parsed_flags) if parsed_flags["secure-port"] else None,
        authentication=_make_authentication_options(parsed_flags),
        authorization=AuthorizationOptions(
            kubeconfig=parsed_flags["authorization-kubeconfig"],
            always_allowed_paths=parsed_flags["authorization-always-allow-paths"],
            allowed_cache_ttl=parsed_flags["authorization-webhook-cache-authorized-ttl"],
            denied_cache_ttl=parsed_flags["authorization-webhook-cache-unauthorized-ttl"],
        ),
        max_in_unschedulable_pods_seconds=parsed_flags["pod-max-in-unschedulable-pods-duration"],
        logs=make_logging_options(parsed_flags),
        features=get_values_by_gate_and_stage(feature_gates, release),
        disabled_metrics=frozenset(parsed_flags["disabled-metrics"]),
        shows_hidden_metrics=bool(parsed_flags["show-hidden-metrics-for-version"]),
        warnings=(*list_flag_warnings(parsed_flags), *setup.warnings),
        serves_ui=parsed_flags["ui"],
        flags={name: FLAGS[name].type.render(parsed_flags[name]) for name in sorted(FLAGS)},
    )


def list_flag_warnings(parsed_flags: ParsedFlags) -> Iterator[str]:
    """Yield one warning per flag that is deprecated or has no effect."""
    for name in sorted(parsed_flags.changed):
        flag = FLAGS[name]
        if flag.deprecated:
            yield f"Flag --{name} has been deprecated, it {flag.deprecated}"
        if flag.no_effect_reason:
            yield f"Flag --{name} has no effect: {flag.no_effect_reason}"


def make_logging_options(parsed_flags: ParsedFlags) -> LoggingOptions:
    """Return the log's format and verbosity."""
    file_levels = tuple(pattern.rpartition("=") for pattern in parsed_flags["vmodule"])
    return LoggingOptions(
        parsed_flags["logging-format"], parsed_flags["v"], tuple((name, int(level)) for name, _, level in file_levels)
    )


def _validate_flags(parsed_flags: ParsedFlags) -> Iterator[FieldError]:
    port = parsed_flags["secure-port"]
    if not 0 <= port <= 65535:
        yield FieldError("--secure-port", f"{port} must be between 0 and 65535, inclusive; 0 serves nothing")
    yield from validate_shared_flags(parsed_flags)
    yield from _validate_ui(parsed_flags)
    yield from _validate_release(parsed_flags)
    yield from _validate_logging_flags(parsed_flags)


def check_no_arguments(parsed_flags: ParsedFlags, command: str) -> None:
    """Check that the command line has only flags.

    Raises:
        FlagError: it has other arguments.
    """
    if parsed_flags.arguments:
        arguments = " ".join(f'"{argument}"' for argument in parsed_flags.arguments)
        raise FlagError(f'"{command}" does not take any arguments, got [{arguments}]')


def validate_shared_flags(parsed_flags: ParsedFlags) -> Iterator[FieldError]:
    """Yield the errors of flags that `extender serve` has, too."""
    if bool(parsed_flags["tls-cert-file"]) != bool(parsed_flags["tls-private-key-file"]):
        yield FieldError("--tls-cert-file", "want --tls-cert-file and --tls-private-key-file together, or neither")
    for path in parsed_flags["authorization-always-allow-paths"]:
        if "*" in path[:-1]:
            yield FieldError("--authorization-always-allow-paths", f'only trailing * allowed in "{path}"')
    if parsed_flags["logging-format"] not in {"text", "json"}:
        message = f'unsupported log format "{parsed_flags["logging-format"]}"; want text or json'
        yield FieldError("--logging-format", message)


def _validate_ui(parsed_flags: ParsedFlags) -> Iterator[FieldError]:
    if not parsed_flags["ui"]:
        return
    if not parsed_flags["secure-port"]:
        yield FieldError("--ui", "the pages need a port; leave out --secure-port=0")
    pattern = find_pattern_of_pages(parsed_flags["authorization-always-allow-paths"])
    if pattern and not ServingOptions(parsed_flags["bind-address"]).is_loopback:
        message = f'every client of {parsed_flags["bind-address"]} could read the pages; leave out "{pattern}" or --ui'
        yield FieldError("--authorization-always-allow-paths", message)


def _validate_release(parsed_flags: ParsedFlags) -> Iterator[FieldError]:
    """Check the emulated release. `--show-hidden-metrics-for-version` must be empty or the previous release."""
    try:
        previous_version = parse_emulated_version(parsed_flags["emulated-version"]).previous_version
    except ConfigError as error:
        yield from error.errors
        return
    hidden_version = parsed_flags["show-hidden-metrics-for-version"]
    if hidden_version not in {"", previous_version}:
        yield FieldError(
            "--show-hidden-metrics-for-version",
            f'"{hidden_version}" must be omitted or have the value {previous_version}',
        )


def _validate_logging_flags(parsed: ParsedFlags) -> Iterator[FieldError]:
    for pattern in parsed["vmodule"]:
        name, _, level = pattern.rpartition("=")
        if not name or not level.isascii() or not level.isdigit():
            yield FieldError("--vmodule", f'"{pattern}" is not of the form pattern=N')
    if parsed["vmodule"] and parsed["logging-format"] == "json":
        yield FieldError("--vmodule", "only supported for text log format")
    if parsed["log-flush-frequency"] <= 0:
        yield FieldError("--log-flush-frequency", "must be greater than zero")
    for name in ("log-text-split-stream", "log-json-split-stream"):
        if parsed[name]:
            yield FieldError(f"--{name}", "feature LoggingAlphaOptions is disabled")


def _build_setup(parsed: ParsedFlags, gates: FeatureGates) -> wiring.SchedulerSetup:
    """Build the configuration with the flags' changes, and the configuration's plugins."""
    if not parsed["config"]:
        configuration = _apply_deprecated_flags(make_default_configuration(gates.release), parsed)
        return wiring.build_setup(_require_valid(_apply_leader_election_flags(configuration, parsed)), gates)
    setup = read_setup(parsed["config"], gates)
    configuration = _require_valid(_apply_leader_election_flags(setup.configuration, parsed))
    return dataclasses.replace(setup, configuration=configuration)


def _require_valid(configuration: Configuration) -> Configuration:
    errors = list(validate_configuration(configuration))
    if errors:
        raise ConfigError(errors)
    return configuration


def _get_changed_fields(parsed: ParsedFlags, fields_by_flag: dict[str, str]) -> dict[str, Any]:
    return {field: parsed[name] for name, field in fields_by_flag.items() if name in parsed.changed}


def _apply_leader_election_flags(configuration: Configuration, parsed: ParsedFlags) -> Configuration:
    election = msgspec.structs.replace(
        configuration.leader_election, **_get_changed_fields(parsed, _LEADER_ELECTION_FIELDS)
    )
    return dataclasses.replace(configuration, leader_election=election)


def _apply_deprecated_flags(configuration: Configuration, parsed: ParsedFlags) -> Configuration:
    connection = msgspec.structs.replace(
        configuration.client_connection, **_get_changed_fields(parsed, _CLIENT_CONNECTION_FIELDS)
    )
    return dataclasses.replace(
        configuration, client_connection=connection, **_get_changed_fields(parsed, _PROFILING_FIELDS)
    )


def _make_serving_options(parsed: ParsedFlags) -> ServingOptions:
    return ServingOptions(
        address=parsed["bind-address"],
        port=parsed["secure-port"],
        cert_file=parsed["tls-cert-file"],
        key_file=parsed["tls-private-key-file"],
        cert_dir=parsed["cert-dir"],
        min_tls_version=parsed["tls-min-version"],
        cipher_suites=parsed["tls-cipher-suites"],
        reuse_port=parsed["permit-port-sharing"],
    )


def _make_authentication_options(parsed: ParsedFlags) -> AuthenticationOptions:
    return AuthenticationOptions(
        kubeconfig=parsed["authentication-kubeconfig"],
        token_cache_ttl=parsed["authentication-token-webhook-cache-ttl"],
        skip_lookup=parsed["authentication-skip-lookup"],
        tolerate_lookup_failure=parsed["authentication-tolerate-lookup-failure"],
        client_ca_file=parsed["client-ca-file"],
        front_proxy=FrontProxyOptions(
            ca_file=parsed["requestheader-client-ca-file"],
            allowed_names=parsed["requestheader-allowed-names"],
            username_headers=parsed["requestheader-username-headers"],
            uid_headers=parsed["requestheader-uid-headers"],
            group_headers=parsed["requestheader-group-headers"],
            extra_header_prefixes=parsed["requestheader-extra-headers-prefix"],
        ),
    )
