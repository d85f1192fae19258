"""From a configuration and a catalogue of plugin classes to profiles that are ready to run; every fault at once.

Source: A.7, G023, G034.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from extender.config import model
from extender.config.defaults import BUILT_IN
from extender.config.expand import Expanded, expand_all
from extender.config.faults import ConfigError, Fault
from extender.config.gates import FeatureGates
from extender.config.strict import decode_strict
from extender.framework.group_points import PodGroupPostFilter
from extender.framework.points import Assuming
from extender.framework.profiles import GroupRules, Profile, WeightedPlacementScore, WeightedScore
from extender.framework.runner import told
from extender.framework.setup import CheckedOptions, DefaultedOptions, Setup

Catalogue = Mapping[str, type[Any]]
"""Plugin classes by name."""

METHODS: Mapping[str, str] = {
    "preEnqueue": "pre_enqueue",
    "queueSort": "sort_key",
    "preFilter": "pre_filter",
    "filter": "filter",
    "postFilter": "post_filter",
    "preScore": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "preBind": "pre_bind",
    "bind": "bind",
    "postBind": "post_bind",
    "placementGenerate": "placement_generate",
    "placementScore": "placement_score",
}
"""Extension points as a configuration names them, and the method that stands at each."""

_PLURAL = {
    "preEnqueue": "pre_enqueues",
    "preFilter": "pre_filters",
    "filter": "filters",
    "postFilter": "post_filters",
    "preScore": "pre_scores",
    "reserve": "reserves",
    "permit": "permits",
    "preBind": "pre_binds",
    "bind": "binds",
    "postBind": "post_binds",
    "placementGenerate": "placement_generates",
}


@dataclass(frozen=True, slots=True)
class Registry:
    """The profiles of one configuration, built.

    Attributes:
        profiles: by scheduler name.
        options: that the plugins were built with, by scheduler and plugin name.
        shared: what plugins have in common, see `setup.Setup`.
    """

    profiles: Mapping[str, Profile]
    options: Mapping[str, Mapping[str, Mapping[str, object]]]
    shared: dict[str, Any]


def points_of(plugin: type[Any]) -> frozenset[str]:
    """The extension points *plugin* stands at, by the names of its methods."""
    return frozenset(point for point, method in METHODS.items() if callable(getattr(plugin, method, None)))


def build(
    configuration: model.Configuration,
    catalogue: Catalogue,
    gates: FeatureGates,
    shared: dict[str, Any] | None = None,
) -> Registry:
    """The profiles of *configuration*, each plugin built once a profile (A083).

    Raises:
        ConfigError: unknown plugins, wrong options, rules between plugins and profiles broken: all of it at once.
    """

    def points(name: str) -> frozenset[str] | None:
        known = catalogue.get(name)
        if known is None:
            return frozenset() if name in BUILT_IN else None
        return points_of(known)

    expanded, faults = expand_all(configuration.profiles, points, catalogue)
    profiles: dict[str, Profile] = {}
    shared = {} if shared is None else shared
    options: dict[str, Mapping[str, Mapping[str, object]]] = {}
    for profile in configuration.profiles:
        builder = _Builder(profile, configuration, catalogue, gates, shared)
        builder.check_options()
        plugins = expanded.get(profile.scheduler_name, {})
        if not faults and not builder.faults:
            built = builder.build(plugins)
            if built is not None:
                profiles[profile.scheduler_name] = built
                options[profile.scheduler_name] = builder.rendered(plugins)
        faults = [*faults, *builder.faults]
    if faults:
        raise ConfigError(faults)
    return Registry(profiles, options, shared)


@dataclass(slots=True)
class _Builder:
    """One profile being built; collects faults."""

    profile: model.Profile
    configuration: model.Configuration
    catalogue: Catalogue
    gates: FeatureGates
    shared: dict[str, Any]
    faults: list[Fault] = field(default_factory=list)
    decoded: dict[str, Any] = field(default_factory=dict)

    def check_options(self) -> None:
        """Decode the arguments of every plugin in the catalogue, defaults where the profile gives none."""
        for name, plugin in self.catalogue.items():
            raw = dict(self.profile.plugin_config.get(name, {}))
            path = self.profile.args_paths.get(name, f"{self.profile.path}.pluginConfig[{name}].args")
            kind = getattr(plugin, "options", None)
            if kind is None:
                extra = sorted(set(raw) - {"kind", "apiVersion"})
                if extra:
                    self.faults.append(Fault(path, f"{name} takes no arguments, got {', '.join(extra)}"))
                continue
            self.decoded[name] = self._decode(name, kind, raw, path)

    def _decode(self, name: str, kind: type[msgspec.Struct], raw: dict[str, Any], path: str) -> Any:
        if name == "NodeResourcesFit" and (ignored := self._ignored_by_extenders()):
            raw["ignoredResources"] = ignored  # overwrites what the profile says, as kube-scheduler does: F040
        body: Mapping[str, Any] = kind.defaulted(raw, self.gates) if issubclass(kind, DefaultedOptions) else raw
        options, wrong = decode_strict(body, kind, path)
        self.faults.extend(wrong)
        if options is not None and isinstance(options, CheckedOptions):
            self.faults.extend(options.faults(path, self.gates))
        return options

    def _ignored_by_extenders(self) -> list[str]:
        return [r.name for e in self.configuration.extenders for r in e.managed_resources if r.ignored_by_scheduler]

    def build(self, plugins: Expanded) -> Profile | None:
        """The profile with its plugins built, or None if one could not be (then a fault says so)."""
        names = dict.fromkeys(plugin.name for point in plugins.values() for plugin in point)
        instances = {name: self._instance(name) for name in names}
        if self.faults:
            return None
        lists = {plural: tuple(instances[p.name] for p in plugins.get(point, ())) for point, plural in _PLURAL.items()}
        percentage = self.profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.configuration.percentage_of_nodes_to_score
        return Profile(
            scheduler_name=self.profile.scheduler_name,
            queue_sort=instances[plugins["queueSort"][0].name],
            percentage_of_nodes_to_score=percentage or None,
            scores=tuple(WeightedScore(instances[p.name], p.weight) for p in plugins.get("score", ())),
            placement_scores=tuple(
                WeightedPlacementScore(instances[p.name], p.weight) for p in plugins.get("placementScore", ())
            ),
            assumings=tuple(each for each in lists["reserves"] if isinstance(each, Assuming)),
            plugins=instances,
            check_all_filters=self.profile.check_all_filters,
            groups=_group_rules(self.gates, instances),
            **lists,
        )

    def _instance(self, name: str) -> Any:
        plugin = self.catalogue[name]
        try:
            if not inspect.signature(plugin).parameters:
                return plugin()
            return plugin(Setup(self.decoded.get(name), self.gates, self.profile.scheduler_name, self.shared))
        except Exception as wrong:  # noqa: BLE001  a plugin of somebody else's may raise anything
            self.faults.append(Fault(self.profile.path, f'initializing plugin "{name}": {told(wrong)}'))
            return None

    def rendered(self, plugins: Expanded) -> Mapping[str, Mapping[str, object]]:
        """The options of the plugins in use and of those the profile has arguments for, as builtins. Source: G034."""
        shown = {plugin.name for point in plugins.values() for plugin in point} | self.profile.plugin_config.keys()
        return {
            name: msgspec.to_builtins(options)
            for name, options in self.decoded.items()
            if options is not None and name in shown
        }


def _group_rules(gates: FeatureGates, plugins: Mapping[str, Any]) -> GroupRules | None:
    """How the gates have pod groups scheduled. DefaultPreemption alone makes room for groups. Source: A077, A144."""
    if "GenericWorkload" not in gates:
        return None
    preempting = plugins.get("DefaultPreemption")
    return GroupRules(
        gangs="GangScheduling" in gates,
        by_placement="TopologyAwareWorkloadScheduling" in gates,
        preempts="WorkloadAwarePreemption" in gates,
        post_filter=preempting if isinstance(preempting, PodGroupPostFilter) else None,
    )
