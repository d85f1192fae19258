"""Rendering of a configuration as YAML, in the format of kube-scheduler's `--write-config-to`.

Source: cmd/kube-scheduler/app/options/configfile.go, LogOrWriteConfig (1.36).
"""

import base64
from collections.abc import Mapping, Sequence

import msgspec

from extender.config import durations
from extender.config.defaults import PLUGINS_WITH_ARGS
from extender.config.documents import dump_yaml
from extender.config.model import (
    API_VERSION,
    KIND,
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    Plugin,
    Plugins,
    PluginSet,
    Profile,
    TLSConfig,
)
from extender.config.releases import DEFAULT_RELEASE, Release

ArgsByScheduler = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Plugin arguments by scheduler name, then by plugin name."""


def render_configuration(
    configuration: Configuration, args: ArgsByScheduler | None = None, release: Release = DEFAULT_RELEASE
) -> str:
    """Render *configuration* as YAML from which `load_configuration` returns an equal configuration.

    Keys are sorted and durations are Go strings. As in kube-scheduler, plugin sets are merged with the defaults, and
    fields with omitempty are omitted if they are false, empty or unset.

    Args:
        configuration: the configuration.
        args: defaulted arguments by scheduler name and plugin name. They replace `plugin_config`. Missing kinds and
            apiVersions are added. Plugins are sorted by name.
        release: the release whose extension points are rendered.
    """
    profiles = [
        _render_profile(profile, (args or {}).get(profile.scheduler_name), release)
        for profile in configuration.profiles
    ]
    document: dict[str, object] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": _render_client_connection(configuration.client_connection),
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "enableProfiling": configuration.enable_profiling,
        "leaderElection": _render_leader_election(configuration.leader_election),
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "profiles": profiles,
    }
    if configuration.extenders:
        document["extenders"] = [_render_extender(extender) for extender in configuration.extenders]
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return dump_yaml(document)


def _render_client_connection(connection: ClientConnection) -> dict[str, object]:
    qps = connection.qps
    return {
        "acceptContentTypes": connection.accept_content_types,
        "burst": connection.burst,
        "contentType": connection.content_type,
        "kubeconfig": connection.kubeconfig,
        "qps": int(qps) if qps.is_integer() else qps,
    }


def _render_leader_election(election: LeaderElection) -> dict[str, object]:
    return {
        "leaderElect": election.leader_elect,
        "leaseDuration": durations.render(election.lease_duration),
        "renewDeadline": durations.render(election.renew_deadline),
        "resourceLock": election.resource_lock,
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
        "retryPeriod": durations.render(election.retry_period),
    }


def _render_profile(
    profile: Profile, args: Mapping[str, Mapping[str, object]] | None, release: Release
) -> dict[str, object]:
    plugins = _render_plugins(profile.plugins, release)
    fields: dict[str, object] = {"schedulerName": profile.scheduler_name, "plugins": plugins}
    if profile.percentage_of_nodes_to_score is not None:
        fields["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    plugin_config = profile.plugin_config if args is None else {name: _render_args(name, args[name]) for name in args}
    if plugin_config:
        fields["pluginConfig"] = [{"name": name, "args": plugin_config[name]} for name in sorted(plugin_config)]
    return fields


def _render_args(name: str, args: Mapping[str, object]) -> Mapping[str, object]:
    if name not in PLUGINS_WITH_ARGS:
        return args
    return {"apiVersion": API_VERSION, "kind": f"{name}Args", **_omit_empty(args)}


def _omit_empty(fields: Mapping[str, object]) -> dict[str, object]:
    """Omit fields that are unset or an empty list: in kube-scheduler's arguments, each of them has omitempty."""
    return {
        name: _omit_empty(value) if isinstance(value, Mapping) else value
        for name, value in fields.items()
        if value not in (None, [], ())
    }


def _render_plugins(plugins: Plugins, release: Release) -> dict[str, object]:
    return {
        field.encode_name: _render_plugin_set(getattr(plugins, field.name))
        for field in msgspec.structs.fields(Plugins)
        if release.has_pod_group_post_filter or field.name != "pod_group_post_filter"
    }


def _render_plugin_set(plugin_set: PluginSet) -> dict[str, object]:
    lists = {"enabled": _render_plugin_list(plugin_set.enabled), "disabled": _render_plugin_list(plugin_set.disabled)}
    return {key: plugin_list for key, plugin_list in lists.items() if plugin_list}


def _render_plugin_list(plugins: Sequence[Plugin]) -> list[object]:
    return [{"name": plugin.name, "weight": plugin.weight} for plugin in plugins]


def _render_extender(extender: Extender) -> dict[str, object]:
    fields = _get_non_empty_fields(extender)
    fields["urlPrefix"] = extender.url_prefix
    fields["httpTimeout"] = durations.render(extender.http_timeout)
    if extender.managed_resources:
        fields["managedResources"] = [
            {"name": resource.name, **_get_non_empty_fields(resource)} for resource in extender.managed_resources
        ]
    if extender.tls_config is not None:
        fields["tlsConfig"] = _render_tls(extender.tls_config)
    return fields


def _render_tls(tls: TLSConfig) -> dict[str, object]:
    return {
        key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for key, value in _get_non_empty_fields(tls).items()
    }


def _get_non_empty_fields(struct: msgspec.Struct) -> dict[str, object]:
    """Return the fields of *struct* that are not false, 0 or empty, by their name in a document."""
    fields = {field.encode_name: getattr(struct, field.name) for field in msgspec.structs.fields(struct)}
    return {key: value for key, value in fields.items() if value}
