"""What a plugin is built from: its options, decoded from the profile's `pluginConfig`, and the feature gates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from extender.config.faults import Fault
from extender.config.gates import FeatureGates

O_co = TypeVar("O_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Setup(Generic[O_co]):
    """Handed to a plugin's constructor.

    Attributes:
        options: an instance of the class attribute `options` of the plugin (a frozen msgspec Struct with
            camelCase names and defaults);
            None for a plugin without options.
        gates: the feature gates in force.
        profile: the scheduler name of the profile the plugin is built for.
        shared: what plugins of several profiles have in common, each under a key of its own; one for all profiles, and
            the same one when a changed configuration is taken over: promises to pods that are being bound belong here.
    """

    options: O_co
    gates: FeatureGates
    profile: str = "default-scheduler"
    shared: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class CheckedOptions(Protocol):
    """Options with rules beyond their types."""

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:
        """Everything wrong with the options, each with its field path below *path*, in kube-scheduler's words (G.4)."""


@runtime_checkable
class DefaultedOptions(Protocol):
    """Options whose defaults depend on each other or on what was written."""

    @classmethod
    def defaulted(cls, raw: Mapping[str, Any], gates: FeatureGates) -> Mapping[str, Any]:
        """*raw* with defaults filled in, before decoding."""
