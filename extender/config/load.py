"""A document becomes a `Configuration`: strictly decoded, defaulted, validated; every fault is reported at once."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from extender.config import defaults
from extender.config.documents import normalise, read
from extender.config.faults import ConfigError, Fault
from extender.config.model import (
    API_VERSION,
    KIND,
    ClientConnection,
    Configuration,
    Extender,
    LeaderElection,
    Plugins,
    Profile,
)
from extender.config.paths import child, item, without_consequences
from extender.config.strict import Int32, Int64, decode_partial, describe
from extender.config.validate import validate

_GROUP: Final = API_VERSION.partition("/")[0]


class LoadError(ConfigError):
    """A document with faults, and what could be made of the rest of it.

    Attributes:
        configuration: what is wrong left at its defaults, so that the rest can be looked at further.
    """

    def __init__(self, faults: Iterable[Fault], configuration: Configuration) -> None:
        super().__init__(faults)
        self.configuration = configuration


class _PluginConfig(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    args: object = None


class _Profile(msgspec.Struct, frozen=True, rename="camel"):
    """A profile as written."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    """A configuration as written; what has no other default here takes the model's."""

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


def load(data: bytes, source: str) -> Configuration:
    """The configuration in YAML or JSON *data*.

    Args:
        data: the text, UTF-8.
        source: the file's name, for messages about the text itself.

    Raises:
        ConfigError: with every fault of decoding and validation; a `LoadError` if it is a configuration at all.
    """
    document, faults = read(data, source)
    return _build(document, source, faults)


def from_builtins(obj: object, source: str) -> Configuration:
    """The configuration in an object of plain values, such as a scenario's `config`.

    Raises:
        ConfigError: as `load`.
    """
    document, faults = normalise(obj)
    return _build(document, source, faults)


def _build(document: object, source: str, faults: list[Fault]) -> Configuration:
    if document is None:
        document = {}
    if not isinstance(document, Mapping):
        raise ConfigError([*faults, Fault("", f"{source}: expected an object, got {describe(document)}")])
    wrong = _type_fault(document, source)
    if wrong is not None:
        raise ConfigError([*faults, wrong])
    written, undecoded = decode_partial(document, _Document, "")
    faults += undecoded
    configuration, misplaced = _complete(written or _Document())
    faults += misplaced
    faults += without_consequences(validate(configuration), faults)
    if faults:
        raise LoadError(faults, configuration)
    return configuration


def _type_fault(document: Mapping[str, object], source: str) -> Fault | None:
    """Source: G018."""
    for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        value = document.get(key) or ""
        if not isinstance(value, str):
            return Fault(key, f"expected a string, got {describe(value)}")
        if not value:
            wanted = KIND if key == "kind" else API_VERSION
            return Fault("", f"Object '{name}' is missing in '{source}': write {key}: {wanted}")
    kind, version = document["kind"], document["apiVersion"]
    if (kind, version) == (KIND, API_VERSION):
        return None
    got = f"{version if '/' in str(version) else f'/{version}'}, Kind={kind}"
    return Fault("", f"couldn't decode as {KIND}, got {got}: write apiVersion: {API_VERSION} and kind: {KIND}")


def _complete(written: _Document) -> tuple[Configuration, list[Fault]]:
    """*written* with every default filled in. Source: G001-G017."""
    faults: list[Fault] = []
    profiles = written.profiles or (_Profile(),)
    alone = len(profiles) == 1
    contention = written.enable_contention_profiling
    configuration = Configuration(
        profiles=tuple(_profile(profile, item("profiles", i), alone, faults) for i, profile in enumerate(profiles)),
        parallelism=written.parallelism,
        leader_election=defaults.leader_election(written.leader_election),
        client_connection=defaults.client_connection(written.client_connection),
        enable_profiling=written.enable_profiling,
        enable_contention_profiling=written.enable_profiling if contention is None else contention,
        percentage_of_nodes_to_score=written.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=written.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=written.pod_max_backoff_seconds,
        extenders=written.extenders,
        delay_cache_until_active=written.delay_cache_until_active,
    )
    return configuration, faults


def _profile(written: _Profile, path: str, alone: bool, faults: list[Fault]) -> Profile:
    """Only a lone profile gets the default name; an empty name that is written stays wrong. Source: G020."""
    name = written.scheduler_name
    if name is None:
        name = defaults.DEFAULT_SCHEDULER_NAME if alone else ""
    args: dict[str, Mapping[str, object]] = {}
    places: dict[str, str] = {}
    for index, entry in enumerate(written.plugin_config):
        where = item(child(path, "pluginConfig"), index)
        fault = _args_fault(entry, child(where, "args"))
        if fault is not None:
            faults.append(fault)
        if entry.name in args:
            faults.append(Fault(where, f'Duplicate value: "{entry.name}"'))
            continue
        args[entry.name] = entry.args if isinstance(entry.args, Mapping) else {}
        places[entry.name] = child(where, "args")
    return Profile(
        scheduler_name=name,
        percentage_of_nodes_to_score=written.percentage_of_nodes_to_score,
        plugins=defaults.with_default_plugins(written.plugins),
        plugin_config=args,
        args_paths=places,
        path=path,
    )


def _args_fault(entry: _PluginConfig, path: str) -> Fault | None:
    """Why the arguments cannot be those of the plugin, by their outside. Source: G023, G026."""
    ours = entry.name in defaults.WITH_ARGS
    if entry.args is None:
        return None
    if not isinstance(entry.args, Mapping):
        return Fault(path, f"has to match plugin args: expected an object, got {describe(entry.args)}")
    if not ours:
        return None
    wanted = f"{entry.name}Args"
    kind = entry.args.get("kind") or wanted
    version = entry.args.get("apiVersion") or API_VERSION
    if not isinstance(kind, str) or not isinstance(version, str):
        return Fault(path, "kind and apiVersion have to be strings")
    group = version.rpartition("/")[0]
    if kind != wanted or group != _GROUP:
        got = f"{kind}.{group}" if group else kind
        return Fault(path, f"args for plugin {entry.name} were not of type {wanted}.{_GROUP}, got {got}")
    if version != API_VERSION:
        return Fault(path, f'no kind "{kind}" is registered for version "{version}": write apiVersion: {API_VERSION}')
    return None
