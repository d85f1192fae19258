"""A Policy becomes the configuration that decides the same. Source: C085."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from extender.config.defaults import DEFAULT_SCHEDULER_NAME, with_default_plugins
from extender.config.faults import ConfigError
from extender.config.model import Configuration, Extender, Plugin, Plugins, PluginSet, Profile
from extender.policy.model import LegacyExtender, Policy
from extender.policy.names import TWO_SIDED
from extender.policy.validate import validate
from extender.policy.wanted import Wanted, wanted

_FIRST: Final = ("SchedulingGates", "PrioritySort")
_LAST: Final = ("DefaultPreemption", "DefaultBinder")
_ALL: Final = Plugin("*")
_NANOSECONDS: Final = 1e9
_HARD_AFFINITY: Final = 1


@dataclass(frozen=True, slots=True)
class Converted:
    """The configuration that decides as a Policy does, and what has no equal in it, a sentence each."""

    configuration: Configuration
    notes: tuple[str, ...]


def convert(policy: Policy, notes: Iterable[str] = ()) -> Converted:
    """*policy* as a configuration with one profile.

    The plugins stand in `multiPoint`, in the order in which the predicates ran: the names of some are refused at any
    other point (G025). Where a Policy wants a plugin to filter and not to score, or the other way round, it is disabled
    at the other points.

    Args:
        policy: as read.
        notes: to put before those of the conversion.

    Raises:
        ConfigError: everything that is wrong with *policy*.
    """
    faults = validate(policy)
    if faults:
        raise ConfigError(faults)
    found = wanted(policy)
    _complete(policy, found)
    profile = Profile(
        scheduler_name=DEFAULT_SCHEDULER_NAME,
        plugins=with_default_plugins(_plugins(found)),
        plugin_config={name: dict(args) for name, args in found.args.items()},
        check_all_filters=policy.always_check_all_predicates,
        args_paths=dict(found.places),
        path="profiles[0]",
    )
    extenders = tuple(_extender(extender) for extender in policy.extenders)
    return Converted(Configuration(profiles=(profile,), extenders=extenders), (*notes, *found.notes))


def _complete(policy: Policy, found: Wanted) -> None:
    """What concerns the Policy as a whole."""
    in_use = {*found.filters, *found.scores}
    weight = policy.hard_pod_affinity_symmetric_weight or _HARD_AFFINITY
    if weight != _HARD_AFFINITY and "InterPodAffinity" in in_use:
        found.args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        found.places["InterPodAffinity"] = "hardPodAffinitySymmetricWeight"
    if "PodTopologySpread" in in_use:
        # The default constraints of today would spread once more what SelectorSpread spreads already.
        found.args["PodTopologySpread"] = {"defaultingType": "List"}
        found.places["PodTopologySpread"] = "predicates"
    if policy.always_check_all_predicates:
        found.note(
            "alwaysCheckAllPredicates: a KubeSchedulerConfiguration has no equal; there a node is told the first "
            "plugin that refuses it. Which nodes are refused is the same"
        )


def _plugins(found: Wanted) -> Plugins:
    unfiltered = [name for name in found.scores if name not in found.filters]
    enabled = [Plugin(name, found.scores.get(name, 0)) for name in (*found.filters, *unfiltered)]
    without_filter = _off(name for name in unfiltered if name in TWO_SIDED)
    without_score = _off(name for name in found.filters if name in TWO_SIDED and name not in found.scores)
    return Plugins(
        multi_point=PluginSet(
            enabled=(*map(Plugin, _FIRST), *enabled, *map(Plugin, _LAST)),
            disabled=(_ALL,),
        ),
        pre_filter=without_filter,
        filter=without_filter,
        pre_score=without_score,
        score=without_score,
    )


def _off(names: Iterable[str]) -> PluginSet:
    return PluginSet(disabled=tuple(map(Plugin, names)))


def _extender(written: LegacyExtender) -> Extender:
    """Source: C075."""
    return Extender(
        url_prefix=written.url_prefix,
        filter_verb=written.filter_verb,
        preempt_verb=written.preempt_verb,
        prioritize_verb=written.prioritize_verb,
        weight=written.weight,
        bind_verb=written.bind_verb,
        enable_https=written.enable_https,
        tls_config=written.tls_config,
        http_timeout=written.http_timeout / _NANOSECONDS,
        node_cache_capable=written.node_cache_capable,
        managed_resources=written.managed_resources,
        ignorable=written.ignorable,
    )
