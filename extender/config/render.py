"""A configuration as YAML, the way kube-scheduler's `--write-config-to` prints it. Source: G019."""

import base64
from collections.abc import Mapping, Sequence

import msgspec

from extender.config import durations
from extender.config.defaults import WITH_ARGS
from extender.config.documents import write
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

Args = Mapping[str, Mapping[str, Mapping[str, object]]]


def render(configuration: Configuration, args: Args | None = None) -> str:
    """*configuration* as YAML that `load` reads back equal.

    Keys are sorted, durations are Go strings. As in kube-scheduler the plugin sets are those merged with the defaults,
    and what is false, empty or unset is left out where Kubernetes leaves it out.

    Args:
        configuration: what to write.
        args: by scheduler name and plugin name, the arguments after defaulting, to write instead of those the
            configuration was given. They get the kind and apiVersion they lack. Plugin order is by name.
    """
    profiles = [_profile(profile, (args or {}).get(profile.scheduler_name)) for profile in configuration.profiles]
    document: dict[str, object] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clientConnection": _client_connection(configuration.client_connection),
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "enableProfiling": configuration.enable_profiling,
        "leaderElection": _leader_election(configuration.leader_election),
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "profiles": profiles,
    }
    if configuration.extenders:
        document["extenders"] = [_extender(extender) for extender in configuration.extenders]
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return write(document)


def _client_connection(connection: ClientConnection) -> dict[str, object]:
    qps = connection.qps
    return {
        "acceptContentTypes": connection.accept_content_types,
        "burst": connection.burst,
        "contentType": connection.content_type,
        "kubeconfig": connection.kubeconfig,
        "qps": int(qps) if qps.is_integer() else qps,
    }


def _leader_election(election: LeaderElection) -> dict[str, object]:
    return {
        "leaderElect": election.leader_elect,
        "leaseDuration": durations.render(election.lease_duration),
        "renewDeadline": durations.render(election.renew_deadline),
        "resourceLock": election.resource_lock,
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
        "retryPeriod": durations.render(election.retry_period),
    }


def _profile(profile: Profile, args: Mapping[str, Mapping[str, object]] | None) -> dict[str, object]:
    written: dict[str, object] = {"schedulerName": profile.scheduler_name, "plugins": _plugins(profile.plugins)}
    if profile.percentage_of_nodes_to_score is not None:
        written["percentageOfNodesToScore"] = profile.percentage_of_nodes_to_score
    shown = profile.plugin_config if args is None else {name: _typed(name, args[name]) for name in args}
    if shown:
        written["pluginConfig"] = [{"name": name, "args": shown[name]} for name in sorted(shown)]
    return written


def _typed(name: str, args: Mapping[str, object]) -> Mapping[str, object]:
    return {"apiVersion": API_VERSION, "kind": f"{name}Args", **args} if name in WITH_ARGS else args


def _plugins(plugins: Plugins) -> dict[str, object]:
    return {field.encode_name: _set(getattr(plugins, field.name)) for field in msgspec.structs.fields(Plugins)}


def _set(plugins: PluginSet) -> dict[str, object]:
    lists = {"enabled": _list(plugins.enabled), "disabled": _list(plugins.disabled)}
    return {key: found for key, found in lists.items() if found}


def _list(plugins: Sequence[Plugin]) -> list[object]:
    return [{"name": plugin.name, "weight": plugin.weight} for plugin in plugins]


def _extender(extender: Extender) -> dict[str, object]:
    written = _unless_empty(extender)
    written["urlPrefix"] = extender.url_prefix
    written["httpTimeout"] = durations.render(extender.http_timeout)
    if extender.managed_resources:
        written["managedResources"] = [
            {"name": resource.name, **_unless_empty(resource)} for resource in extender.managed_resources
        ]
    if extender.tls_config is not None:
        written["tlsConfig"] = _tls(extender.tls_config)
    return written


def _tls(tls: TLSConfig) -> dict[str, object]:
    return {
        key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for key, value in _unless_empty(tls).items()
    }


def _unless_empty(struct: msgspec.Struct) -> dict[str, object]:
    """The fields of *struct* by the name a document gives them, without those that are false, 0 or empty."""
    found = {field.encode_name: getattr(struct, field.name) for field in msgspec.structs.fields(struct)}
    return {key: value for key, value in found.items() if value}
