"""The constructor argument of plugins: their options, decoded from the profile's `pluginConfig`, and feature gates."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from extender.config.errors import FieldError
from extender.config.feature_gates import FeatureGates

OptionsT_co = TypeVar("OptionsT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class PluginArgs(Generic[OptionsT_co]):
    """The argument of a plugin's constructor.

    Attributes:
        options: an instance of the class in the plugin's class attribute `options`; None for a plugin without options.
            The class is a frozen msgspec Struct with camelCase names and defaults.
        gates: the feature gates.
        scheduler_name: the scheduler name of the profile for which the plugin is created.
        shared_state: the state that the plugins of all profiles share, by key. It survives a reload of the
            configuration, so that reservations of pods that are being bound are not lost.
    """

    options: OptionsT_co
    gates: FeatureGates
    scheduler_name: str = "default-scheduler"
    shared_state: dict[str, Any] = field(default_factory=dict)


def takes_arguments(plugin: type[Any]) -> bool:
    """Return whether the constructor of *plugin* takes the `PluginArgs`.

    A subclass of a Protocol without a constructor inherits that of Protocol: it takes nothing, despite its signature.
    """
    is_inherited_from_protocol = getattr(plugin.__init__, "__module__", "") == Protocol.__module__
    return not is_inherited_from_protocol and bool(inspect.signature(plugin).parameters)


@runtime_checkable
class ValidatedOptions(Protocol):
    """Options with a validation beyond the types of the fields."""

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Return all errors of the options, with kube-scheduler's texts, each with its field path below *path*."""


@runtime_checkable
class DefaultedOptions(Protocol):
    """Options whose defaults depend on each other or on the configured values."""

    @classmethod
    def apply_defaults(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """Return *raw*, the plain values before decoding, with defaults added."""
