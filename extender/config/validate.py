"""What may not be configured, said in kube-scheduler's words. Source: G001-G026, F003-F010."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from extender.config import durations
from extender.config.faults import Fault
from extender.config.model import (
    API_VERSION,
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    PluginSet,
    Profile,
)
from extender.config.paths import child, item
from extender.config.points import PLACEMENT, POINTS
from extender.config.resource_names import extended_resource_faults

REMOVED: Final = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_REMOVED_FAULT: Final = (
    f'was invalid in version "{API_VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)


def validate(configuration: Configuration) -> list[Fault]:
    """Everything wrong with *configuration*, in kube-scheduler's order; plugin arguments are left to their plugins."""
    return list(_faults(configuration))


def invalid(path: str, value: object, detail: str) -> Fault:
    """A fault in the form of Kubernetes' field errors: `Invalid value: 0: must be greater than 0`."""
    return Fault(path, f"Invalid value: {json.dumps(value, separators=(',', ':'), ensure_ascii=False)}: {detail}")


def _faults(configuration: Configuration) -> Iterator[Fault]:
    yield from _client_connection(configuration.client_connection)
    yield from _leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        yield invalid("parallelism", configuration.parallelism, "should be an integer value greater than zero")
    yield from _profiles(configuration.profiles)
    yield from _percentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score)
    initial, longest = configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        yield invalid("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds")
    yield from _extenders(configuration.extenders)


def _client_connection(connection: ClientConnection) -> Iterator[Fault]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[Fault]:
    if not election.leader_elect:
        return
    timings = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for key, seconds in timings.items():
        if seconds <= 0:
            yield invalid(f"leaderElection.{key}", durations.render(seconds), "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        deadline = durations.render(election.renew_deadline)
        yield invalid("leaderElection.leaseDuration", deadline, "must be greater than `RenewDeadline`")
    names = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    for key, name in names.items():
        if not name:
            yield Fault(f"leaderElection.{key}", "Required value")
    if election.resource_lock != "leases":
        yield invalid("leaderElection.resourceLock", election.resource_lock, 'resourceLock value must be "leases"')


def _percentage(path: str, percentage: int | None) -> Iterator[Fault]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: Sequence[Profile]) -> Iterator[Fault]:
    if not profiles:
        yield Fault("profiles", "Required value")
        return
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = item("profiles", index)
        yield from _profile(path, profile)
        if profile.scheduler_name in seen:
            other = f"{item('profiles', seen[profile.scheduler_name])}.schedulerName"
            yield Fault(f"{path}.schedulerName", f'Duplicate value: "{other}"')
        seen[profile.scheduler_name] = index
    yield from _common_queue_sort(profiles)


def _profile(path: str, profile: Profile) -> Iterator[Fault]:
    if not profile.scheduler_name:
        yield Fault(f"{path}.schedulerName", "Required value")
    yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
    # multiPoint and the placement points are not looked at: kube-scheduler finds such names there unknown. G025.
    for point in POINTS:
        if point.key in PLACEMENT:
            continue
        for index, plugin in enumerate(point.of(profile.plugins).enabled):
            if plugin.name in REMOVED:
                yield invalid(f"{path}.plugins.{point.key}.enabled[{index}]", plugin.name, _REMOVED_FAULT)
    for name in profile.plugin_config:
        if name in REMOVED:
            where = profile.args_paths.get(name, f"{path}.pluginConfig.args").removesuffix(".args")
            yield invalid(where, name, _REMOVED_FAULT)


def _common_queue_sort(profiles: Sequence[Profile]) -> Iterator[Fault]:
    """All profiles share one queue, so its order may not differ. Source: G024."""
    first = profiles[0]
    common = first.plugins.queue_sort
    name = common.enabled[0].name if common.enabled else ""
    if len(common.enabled) > 1:
        where = "profiles[0].plugins.queueSort.Enabled"
        yield invalid(where, len(common.enabled), "only one queue sort plugin can be enabled")
    for index, profile in enumerate(profiles[1:], start=1):
        path = item("profiles", index)
        if profile.plugins.queue_sort != common:
            value = _go_value(profile.plugins.queue_sort)
            yield invalid(child(path, "plugins.queueSort"), value, "must be the same for all profiles")
        args = profile.plugin_config.get(name)
        if args is not None and args != first.plugin_config.get(name):
            where = child(path, "pluginConfig.args")
            yield invalid(where, args, "queueSort must be the same for all profiles")


def _go_value(plugins: PluginSet) -> Mapping[str, object]:
    """A plugin set as Go prints its internal type: capital names, null for an empty list."""
    enabled = [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugins.enabled]
    disabled = [{"Name": plugin.name, "Weight": plugin.weight} for plugin in plugins.disabled]
    return {"Enabled": enabled or None, "Disabled": disabled or None}


def _extenders(extenders: Sequence[Extender]) -> Iterator[Fault]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"{path}.weight", extender.weight, "must have a positive weight applied to it")
        for number, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{number}].name"
            for message in extended_resource_faults(resource.name):
                yield invalid(where, resource.name, message)
            if resource.name in managed:
                yield invalid(where, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")
