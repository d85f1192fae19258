"""Validation of a configuration with kube-scheduler's messages.

Source: pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration, validateExtenders,
invalidPluginsByVersion (1.36).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from extender.api.label_syntax import invalid_value, validate_qualified_name
from extender.api.requests import is_extended_resource
from extender.config import durations
from extender.config.errors import FieldError, child, item
from extender.config.model import (
    API_VERSION,
    EXTENSION_POINTS,
    PLACEMENT_POINTS,
    Configuration,
    Extender,
    LeaderElection,
    PluginSet,
    Profile,
)

REMOVED_PLUGINS: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED_ERROR: Final = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def make_invalid_value_error(path: str, value: object, detail: str) -> FieldError:
    """Return a field error like upstream's field.Invalid."""
    return FieldError(path, invalid_value(value, detail))


def validate_extended_resource_name(name: str) -> list[str]:
    """Return the reasons why *name* is not the name of an extended resource; an empty list if it is.

    Source: pkg/scheduler/apis/config/validation/validation.go, validateExtendedResourceName (1.36).
    """
    errors = validate_qualified_name(name)
    return errors if errors or is_extended_resource(name) else ["is an invalid extended resource name"]


def validate_configuration(configuration: Configuration) -> Iterator[FieldError]:
    """Yield all errors in kube-scheduler's order, except errors in plugin arguments."""
    if configuration.client_connection.burst < 0:
        yield make_invalid_value_error(
            "clientConnection.burst", configuration.client_connection.burst, "must be non-negative"
        )
    yield from _validate_leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        yield make_invalid_value_error(
            "parallelism", configuration.parallelism, "should be an integer value greater than zero"
        )
    yield from _validate_profiles(configuration.profiles)
    yield from _validate_percentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score)
    initial, maximum = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield make_invalid_value_error("podInitialBackoffSeconds", initial, "must be greater than 0")
    if maximum < initial:
        yield make_invalid_value_error(
            "podMaxBackoffSeconds", maximum, "must be greater than or equal to PodInitialBackoffSeconds"
        )
    yield from _validate_extenders(configuration.extenders)


def _validate_leader_election(election: LeaderElection) -> Iterator[FieldError]:
    if not election.leader_elect:
        return
    timings = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for key, seconds in timings.items():
        if seconds <= 0:
            yield make_invalid_value_error(
                f"leaderElection.{key}", durations.render(seconds), "must be greater than zero"
            )
    if election.lease_duration <= election.renew_deadline:
        deadline = durations.render(election.renew_deadline)
        yield make_invalid_value_error("leaderElection.leaseDuration", deadline, "must be greater than `RenewDeadline`")
    names = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    for key, name in names.items():
        if not name:
            yield FieldError(f"leaderElection.{key}", "Required value")
    if election.resource_lock != "leases":
        yield make_invalid_value_error(
            "leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"'
        )


def _validate_percentage(path: str, percentage: int | None) -> Iterator[FieldError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield make_invalid_value_error(path, percentage, "not in valid range [0-100]")


def _validate_profiles(profiles: Sequence[Profile]) -> Iterator[FieldError]:
    if not profiles:
        yield FieldError("profiles", "Required value")
        return
    index_by_name: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = item("profiles", index)
        yield from _validate_profile(path, profile)
        if profile.scheduler_name in index_by_name:
            first_path = f"{item('profiles', index_by_name[profile.scheduler_name])}.schedulerName"
            yield FieldError(f"{path}.schedulerName", f'Duplicate value: "{first_path}"')
        index_by_name[profile.scheduler_name] = index
    yield from _validate_common_queue_sort(profiles)


def _validate_profile(path: str, profile: Profile) -> Iterator[FieldError]:
    if not profile.scheduler_name:
        yield FieldError(f"{path}.schedulerName", "Required value")
    yield from _validate_percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
    # As in kube-scheduler, multiPoint and the placement points are not checked for removed plugins.
    # The expansion of the profile reports a removed plugin there as unknown.
    for point in EXTENSION_POINTS:
        if point.key in PLACEMENT_POINTS:
            continue
        for index, plugin in enumerate(point.get_plugin_set(profile.plugins).enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield make_invalid_value_error(
                    f"{path}.plugins.{point.key}.enabled[{index}]", plugin.name, _REMOVED_ERROR
                )
    for name in profile.plugin_config:
        if name in REMOVED_PLUGINS:
            config_path = profile.args_paths.get(name, f"{path}.pluginConfig.args").removesuffix(".args")
            yield make_invalid_value_error(config_path, name, _REMOVED_ERROR)


def _validate_common_queue_sort(profiles: Sequence[Profile]) -> Iterator[FieldError]:
    """Check that all profiles have the same queue sort plugin and arguments, because they share one queue.

    Source: pkg/scheduler/apis/config/validation/validation.go, validateCommonQueueSort (1.36).
    """
    first_profile = profiles[0]
    common_queue_sort = first_profile.plugins.queue_sort
    name = common_queue_sort.enabled[0].name if common_queue_sort.enabled else ""
    if len(common_queue_sort.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        yield make_invalid_value_error(
            path, len(common_queue_sort.enabled), "only one queue sort plugin can be enabled"
        )
    for index, profile in enumerate(profiles[1:], start=1):
        path = item("profiles", index)
        if profile.plugins.queue_sort != common_queue_sort:
            value = _to_go_value(profile.plugins.queue_sort)
            yield make_invalid_value_error(child(path, "plugins.queueSort"), value, "must be the same for all profiles")
        args = profile.plugin_config.get(name)
        if args is not None and args != first_profile.plugin_config.get(name):
            args_path = child(path, "pluginConfig.args")
            yield make_invalid_value_error(args_path, args, "queueSort must be the same for all profiles")


def _to_go_value(plugin_set: PluginSet) -> Mapping[str, object]:
    """Return a plugin set in the form that Go prints: capitalized field names, and null for an empty list."""
    enabled = [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugin_set.enabled]
    disabled = [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugin_set.disabled]
    return {"Enabled": enabled or None, "Disabled": disabled or None}


def _validate_extenders(extenders: Sequence[Extender]) -> Iterator[FieldError]:
    managed_names: set[str] = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            yield make_invalid_value_error(
                f"{path}.weight", extender.weight, "must have a positive weight applied to it"
            )
        tls = extender.tls_config
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            message = "specifying a root certificates file with the insecure flag is not allowed"
            yield FieldError(f"{path}.tlsConfig", message)
        for resource_index, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{resource_index}].name"
            for message in validate_extended_resource_name(resource.name):
                yield make_invalid_value_error(name_path, resource.name, message)
            if resource.name in managed_names:
                yield make_invalid_value_error(name_path, resource.name, "duplicate extender managed resource name")
            managed_names.add(resource.name)
    binder_count = sum(bool(extender.bind_verb) for extender in extenders)
    if binder_count > 1:
        value = f"found {binder_count} extenders implementing bind"
        yield make_invalid_value_error("extenders", value, "only one extender can implement bind")
