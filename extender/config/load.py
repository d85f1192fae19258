"""Loading of a `Configuration`: strict decoding, defaulting and validation. All errors are reported together."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from extender.api.defaults import DEFAULT_SCHEDULER_NAME
from extender.api.kinds.meta import Int32, Int64
from extender.config import defaults
from extender.config.documents import normalize, parse_document
from extender.config.errors import ConfigError, FieldError, child, drop_cascading_errors, item
from extender.config.model import (
    API_VERSION,
    KIND,
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    Plugins,
    PluginSet,
    Profile,
)
from extender.config.releases import DEFAULT_RELEASE, Release
from extender.config.strict_decoding import decode_partial, describe_value
from extender.config.validation import validate_configuration

_GROUP: Final = API_VERSION.partition("/")[0]


class InvalidConfigurationError(ConfigError):
    """The errors of a document that is a configuration, and the configuration without its invalid fields.

    Attributes:
        configuration: the configuration, with defaults in place of invalid fields. It allows further checks.
    """

    def __init__(self, errors: Iterable[FieldError], configuration: Configuration) -> None:
        super().__init__(errors)
        self.configuration = configuration


class _PluginConfig(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    args: object = None


class _Profile(msgspec.Struct, frozen=True, rename="camel"):
    """A decoded profile before defaulting."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    """A decoded configuration before defaulting."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[_Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


def load_configuration(data: bytes, source: str, release: Release = DEFAULT_RELEASE) -> Configuration:
    """Load a configuration from a YAML or JSON document.

    *data* is UTF-8; *source* is the file name for messages about the document as a whole. The default plugins are those
    of *release*.

    Raises:
        InvalidConfigurationError: the document is a configuration with decoding or validation errors.
        ConfigError: the document is not a configuration.
    """
    document, errors = parse_document(data, source)
    return build_configuration(document, source, errors, release)


def from_builtins(obj: object, source: str, release: Release = DEFAULT_RELEASE) -> Configuration:
    """Load a configuration from plain values, such as the `config` of a scenario; see `load_configuration`.

    Raises:
        ConfigError: as in `load_configuration`.
    """
    document, errors = normalize(obj)
    return build_configuration(document, source, errors, release)


def build_configuration(document: object, source: str, errors: list[FieldError], release: Release) -> Configuration:
    """Build a configuration from a parsed document and the errors of the parser; see `load_configuration`.

    Raises:
        ConfigError: as in `load_configuration`.
    """
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise ConfigError([*errors, FieldError("", f"{source}: expected an object, got {describe_value(document)}")])
    type_error = _check_type_meta(document, source)
    if type_error is not None:
        errors.append(type_error)
        if document.get("kind") != KIND or not str(document.get("apiVersion")).startswith(f"{_GROUP}/"):
            raise ConfigError(errors)
    decoded_document, decoding_errors = decode_partial(document, _Document, "")
    errors += decoding_errors
    configuration, args_errors = _apply_defaults(decoded_document or _Document(), release)
    errors += args_errors
    errors += drop_cascading_errors(validate_configuration(configuration), errors)
    if errors:
        raise InvalidConfigurationError(errors, configuration)
    return configuration


def _check_type_meta(document: Mapping[str, object], source: str) -> FieldError | None:
    """Return the error in `kind` or `apiVersion`, or None.

    Source: cmd/kube-scheduler/app/options/configfile.go, loadConfig (1.36).
    """
    for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        value = document.get(key) or ""
        if not isinstance(value, str):
            return FieldError(key, f"expected a string, got {describe_value(value)}")
        if not value:
            expected_value = KIND if key == "kind" else API_VERSION
            return FieldError("", f"Object '{name}' is missing in '{source}': write {key}: {expected_value}")
    kind, version = document["kind"], document["apiVersion"]
    if (kind, version) == (KIND, API_VERSION):
        return None
    actual_type = f"{version if '/' in str(version) else f'/{version}'}, Kind={kind}"
    return FieldError(
        "", f"couldn't decode as {KIND}, got {actual_type}: write apiVersion: {API_VERSION} and kind: {KIND}"
    )


def _apply_defaults(document: _Document, release: Release) -> tuple[Configuration, list[FieldError]]:
    """Return the configuration with all defaults, and the errors in plugin arguments.

    Source: pkg/scheduler/apis/config/validation/validation.go, ValidateKubeSchedulerConfiguration;
    component-base/config/v1alpha1/defaults.go, RecommendedDefaultLeaderElectionConfiguration;
    pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration;
    kube-scheduler/config/v1/types.go, KubeSchedulerConfiguration.DelayCacheUntilActive (1.36).
    """
    errors: list[FieldError] = []
    profiles = document.profiles or (_Profile(),)
    is_only_profile = len(profiles) == 1
    contention_profiling = document.enable_contention_profiling
    changes = {
        "profiles": tuple(
            _build_profile(profile, item("profiles", index), errors, release, is_only_profile=is_only_profile)
            for index, profile in enumerate(profiles)
        ),
        "leader_election": defaults.replace_empty_fields(document.leader_election),
        "client_connection": defaults.replace_empty_fields(document.client_connection),
        "enable_contention_profiling": (
            document.enable_profiling if contention_profiling is None else contention_profiling
        ),
    }
    return Configuration(**{**msgspec.structs.asdict(document), **changes}), errors


def _build_profile(
    profile: _Profile, path: str, errors: list[FieldError], release: Release, *, is_only_profile: bool
) -> Profile:
    """Return the profile with its defaults.

    The only profile gets the default name if it has none. If there are several profiles, a profile without a name gets
    an empty name.

    Source: pkg/scheduler/apis/config/v1/defaults.go, SetDefaults_KubeSchedulerConfiguration (1.36).
    """
    scheduler_name = profile.scheduler_name
    if scheduler_name is None:
        scheduler_name = DEFAULT_SCHEDULER_NAME if is_only_profile else ""
    if (
        not release.has_pod_group_post_filter
        and profile.plugins
        and profile.plugins.pod_group_post_filter != PluginSet()
    ):
        field_path = child(path, "plugins.podGroupPostFilter")
        errors.append(FieldError(field_path, 'unknown field "podGroupPostFilter"'))
    args_by_plugin: dict[str, Mapping[str, object]] = {}
    args_paths: dict[str, str] = {}
    for index, entry in enumerate(profile.plugin_config):
        entry_path = item(child(path, "pluginConfig"), index)
        error = _check_args(entry, child(entry_path, "args"))
        if error is not None:
            errors.append(error)
        if entry.name in args_by_plugin:
            errors.append(FieldError(entry_path, f'Duplicate value: "{entry.name}"'))
            continue
        args_by_plugin[entry.name] = entry.args if isinstance(entry.args, Mapping) else {}
        args_paths[entry.name] = child(entry_path, "args")
    return Profile(
        scheduler_name=scheduler_name,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
        plugins=defaults.merge_with_default_plugins(profile.plugins, release),
        plugin_config=args_by_plugin,
        args_paths=args_paths,
        path=path,
    )


def _check_args(entry: _PluginConfig, path: str) -> FieldError | None:
    """Return the error in the type, kind or apiVersion of a plugin's arguments, or None.

    Source: kube-scheduler/config/v1/types.go, PluginConfig.decodeNestedObjects;
    pkg/scheduler/apis/config/validation/validation.go, validatePluginConfig (1.36).
    """
    if entry.args is None:
        return None
    if not isinstance(entry.args, Mapping):
        return FieldError(path, f"has to match plugin args: expected an object, got {describe_value(entry.args)}")
    if entry.name not in defaults.PLUGINS_WITH_ARGS:
        return None
    expected_kind = f"{entry.name}Args"
    kind = entry.args.get("kind") or expected_kind
    version = entry.args.get("apiVersion") or API_VERSION
    if not isinstance(kind, str) or not isinstance(version, str):
        return FieldError(path, "kind and apiVersion have to be strings")
    group = version.rpartition("/")[0]
    if kind != expected_kind or group != _GROUP:
        actual_type = f"{kind}.{group}" if group else kind
        return FieldError(
            path, f"args for plugin {entry.name} were not of type {expected_kind}.{_GROUP}, got {actual_type}"
        )
    if version != API_VERSION:
        return FieldError(
            path, f'no kind "{kind}" is registered for version "{version}": write apiVersion: {API_VERSION}'
        )
    return None
