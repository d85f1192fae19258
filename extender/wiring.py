"""The one place that knows all rooms: from a configuration to what commands and services run on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extender.catalogue import BUILT_IN, catalogue
from extender.config import documents, load
from extender.config.defaults import default_configuration, with_gated_plugins
from extender.config.faults import ConfigError
from extender.config.gates import FeatureGates
from extender.config.model import Configuration
from extender.config.paths import without_consequences
from extender.config.render import render
from extender.decide.engine import Engine
from extender.framework.columns import ColumnCache
from extender.framework.observer import Observer
from extender.framework.profiles import Profile
from extender.framework.registry import Registry, build
from extender.framework.runner import Runner
from extender.framework.slowness import SlowCalls
from extender.policy import document as policy_document
from extender.policy.convert import convert
from extender.volumes.in_tree_limits import environment_fault

_LIMITED_BY_ENVIRONMENT = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))


@dataclass(frozen=True, slots=True)
class Scheduling:
    """A configuration made ready to decide.

    Attributes:
        configuration: as loaded.
        registry: its profiles and their plugins' options.
        gates: the feature gates in force.
        notes: what is passed over, and what a Policy asks for that has no equal, a sentence each.
    """

    configuration: Configuration
    registry: Registry
    gates: FeatureGates
    notes: tuple[str, ...] = ()

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """Profiles by scheduler name."""
        return self.registry.profiles

    @property
    def first(self) -> Profile:
        """The first profile of the configuration."""
        return self.profiles[self.configuration.profiles[0].scheduler_name]

    def defaulted(self) -> str:
        """The whole configuration with every default filled in, as YAML."""
        return render(self.configuration, self.registry.options)


def scheduling(
    configuration: Configuration | None = None,
    gates: FeatureGates | None = None,
    shared: dict[str, Any] | None = None,
) -> Scheduling:
    """*configuration* (the default one if None) with its plugins built; *shared* comes from one it takes over from.

    Raises:
        ConfigError: everything wrong with it.
    """
    gates = gates or FeatureGates()
    chosen = with_gated_plugins(configuration or default_configuration(), gates)
    registry = build(chosen, catalogue(), gates, shared)
    in_use = {name for profile in registry.profiles.values() for name in profile.plugins}
    fault = environment_fault() if in_use & _LIMITED_BY_ENVIRONMENT else None
    return Scheduling(chosen, registry, gates, () if fault is None else (fault,))


def from_file(
    data: bytes, source: str, gates: FeatureGates | None = None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """The configuration in *data* (YAML or JSON, read from *source*) with its plugins built.

    A Policy of an old release, or a ConfigMap with one, will do as well. *shared* comes from the configuration it takes
    over from.

    Raises:
        ConfigError: everything wrong with it.
    """
    if policy_document.is_policy(documents.read(data, source)[0]):
        return from_policy(policy_document.load(data, source), gates, shared)
    return _loaded(lambda: load.load(data, source), gates, shared)


def from_builtins(document: object, source: str, gates: FeatureGates | None = None) -> Scheduling:
    """As `from_file`, for a document that is decoded already (a capture's `config`).

    Raises:
        ConfigError: everything wrong with it.
    """
    if policy_document.is_policy(document):
        return from_policy(policy_document.from_builtins(document, source), gates)
    return _loaded(lambda: load.from_builtins(document, source), gates)


def from_policy(
    written: policy_document.Written, gates: FeatureGates | None = None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """The configuration that decides as a Policy does, with its plugins built; see `from_file`. Source: C085.

    Raises:
        ConfigError: everything wrong with the Policy.
    """
    converted = convert(written.policy, written.notes)
    made = scheduling(converted.configuration, gates, shared)
    return replace(made, notes=(*converted.notes, *made.notes))


def _loaded(
    read: Callable[[], Configuration], gates: FeatureGates | None, shared: dict[str, Any] | None = None
) -> Scheduling:
    """What *read* gives, made ready; the faults of the document and those of its plugins are told together."""
    try:
        return scheduling(read(), gates, shared)
    except load.LoadError as wrong:
        try:
            scheduling(wrong.configuration, gates)
        except ConfigError as more:
            raise ConfigError([*wrong.faults, *without_consequences(more.faults, wrong.faults)]) from wrong
        raise


def engine(observer: Observer | None = None, *, keep: bool = True) -> Engine:
    """What decisions run on; one per thread. *keep* false asks every plugin about every node every time."""
    return Engine(Runner(observer), ColumnCache(enabled=keep))


def naming_slow(tell: Callable[[str], None], observer: Observer | None = None) -> Observer:
    """An observer that gives *tell* a line about each installed plugin that is slow, and passes all on."""
    return SlowCalls(tell, observer, exempt=[plugin.name for plugin in BUILT_IN])
