"""Rendering of a configuration as YAML, in the format of kube-scheduler's `--write-config-to`.

Source: cmd/kube-scheduler/app/options/configfile.go, LogOrWriteConfig (1.36).
"""

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from extender.config import durations
from extender.config.defaults import PLUGINS_WITH_ARGS
from extender.config.documents import dump_yaml
from extender.config.model import (
    API_VERSION,
    KIND,
    Configuration,
    Extender,
    ManagedResource,
    PluginSet,
    Profile,
    TLSConfig,
)
from extender.config.releases import DEFAULT_RELEASE, Release

ArgsByScheduler = Mapping[str, Mapping[str, Mapping[str, object]]]
"""Plugin arguments by scheduler name, then by plugin name."""

_TYPES_WITH_OMITEMPTY: Final = (Extender, ManagedResource, PluginSet, TLSConfig)
"""The types whose fields are omitted if they are false, empty or unset."""

_KEYS_WITHOUT_DEFAULTS: Final = ("apiVersion", "kind", "profiles", "extenders")


def render_without_defaults(configuration: Configuration) -> str:
    """Render the profiles and extenders of *configuration* as short YAML, without default values.

    The YAML loads to an equal configuration if all other fields of *configuration* have their defaults.
    """
    document = build_document(configuration)
    return dump_yaml({key: _strip_defaults(document[key]) for key in _KEYS_WITHOUT_DEFAULTS if key in document})


def build_document(
    configuration: Configuration, args: ArgsByScheduler | None = None, release: Release = DEFAULT_RELEASE
) -> dict[str, object]:
    """Return *configuration* as a document from which `from_builtins` loads an equal configuration.

    Durations are Go strings. As in kube-scheduler, plugin sets are merged with the defaults, and fields with omitempty
    are omitted if they are false, empty or unset.

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
        "clientConnection": _render_value(configuration.client_connection),
        "enableContentionProfiling": configuration.enable_contention_profiling,
        "enableProfiling": configuration.enable_profiling,
        "leaderElection": _render_value(configuration.leader_election),
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_seconds,
        "profiles": profiles,
    }
    if configuration.extenders:
        document["extenders"] = [{"urlPrefix": "", **_render_struct(extender)} for extender in configuration.extenders]
    if configuration.delay_cache_until_active:
        document["delayCacheUntilActive"] = True
    return document


def _render_profile(
    profile: Profile, args: Mapping[str, Mapping[str, object]] | None, release: Release
) -> dict[str, object]:
    plugins = _render_struct(profile.plugins)
    if not release.has_pod_group_post_filter:
        del plugins["podGroupPostFilter"]
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


def _render_struct(struct: msgspec.Struct) -> dict[str, object]:
    """Return the fields of *struct* by their name in a document."""
    fields = [(field, getattr(struct, field.name)) for field in msgspec.structs.fields(struct)]
    return {
        field.encode_name: durations.render(value) if field.type == durations.Duration else _render_value(value)
        for field, value in fields
        if value or not isinstance(struct, _TYPES_WITH_OMITEMPTY)
    }


def _render_value(value: object) -> object:
    match value:
        case msgspec.Struct():
            return _render_struct(value)
        case tuple():
            return [_render_value(element) for element in value]
        case bytes():
            return base64.b64encode(value).decode()
        case float() if value.is_integer():
            return int(value)
    return value


def _strip_defaults(value: object) -> object:
    """Return *value* without empty objects and without weights of 0."""
    if isinstance(value, Mapping):
        stripped_fields = {key: _strip_defaults(field) for key, field in value.items()}
        return {
            key: field for key, field in stripped_fields.items() if field != {} and not (key == "weight" and field == 0)
        }
    if isinstance(value, list):
        return [_strip_defaults(element) for element in value]
    return value
