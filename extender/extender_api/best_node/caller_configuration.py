"""Check the configuration of a kube-scheduler whose extender answers one node.

kube-scheduler selects the only node without its Score plugins and without the verb prioritize of any extender. So a
configuration contradicts itself if another extender scores nodes, or filters nodes after the one node is chosen.

Source: pkg/scheduler/schedule_one.go, Scheduler.schedulePod, findNodesThatPassExtenders (1.36).
"""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from extender.config.errors import ConfigError, FieldError
from extender.config.model import Configuration, Extender
from extender.framework.profiles import Profile

_ALL_NODES_PERCENTAGE = 100


def describe_best_node_effects(
    configuration: Configuration, score_plugins: Mapping[str, Sequence[str]], *, url_prefix: str = "", port: int = 0
) -> list[str]:
    """Return one line for each effect on a kube-scheduler if one of its extenders answers one node.

    The lines name what kube-scheduler no longer calls, and settings that make the answer worse or slow.

    Args:
        configuration: the configuration of kube-scheduler.
        score_plugins: the names of its Score plugins by scheduler name.
        url_prefix: the urlPrefix of the extender that answers one node; empty: the only one with filterVerb.
        port: the port of this extender, which selects one of several extenders; 0: unknown.

    Raises:
        ConfigError: the extender cannot be found, or the configuration contradicts itself.
    """
    index = _find_extender(configuration.extenders, url_prefix, port)
    best_node_extender = configuration.extenders[index]
    errors = list(_find_contradictions(configuration.extenders, index))
    if errors:
        raise ConfigError(errors)
    resources = ", ".join(resource.name for resource in best_node_extender.managed_resources)
    pods = f" that request {resources}" if resources else ""
    lines = [
        f"kube-scheduler calls no Score plugin for pods of {name}{pods}: {', '.join(plugins)} have no effect"
        for name, plugins in score_plugins.items()
        if plugins
    ]
    if best_node_extender.prioritize_verb:
        lines.append(f"kube-scheduler does not call prioritizeVerb of {best_node_extender.url_prefix}")
    lines += [
        f"kube-scheduler does not call prioritizeVerb of {other.url_prefix} for pods{pods}"
        for other in configuration.extenders
        if other is not best_node_extender and other.prioritize_verb
    ]
    if configuration.percentage_of_nodes_to_score != _ALL_NODES_PERCENTAGE:
        lines.append(
            "kube-scheduler sends only a part of the nodes of a large cluster, and the best of them is chosen; "
            "percentageOfNodesToScore: 100 sends all nodes that fit"
        )
    if not best_node_extender.node_cache_capable:
        lines.append("kube-scheduler sends whole nodes, which is slow; nodeCacheCapable: true sends names")
    return lines


def list_score_plugins(profiles: Mapping[str, Profile]) -> dict[str, list[str]]:
    """Return the names of the Score plugins by scheduler name."""
    return {
        name: [weighted_plugin.plugin.name for weighted_plugin in profile.score_plugins]
        for name, profile in profiles.items()
    }


def _find_extender(extenders: Sequence[Extender], url_prefix: str, port: int) -> int:
    """Return the index of the extender that answers one node."""
    indices = [index for index, extender in enumerate(extenders) if extender.filter_verb]
    if not indices:
        raise ConfigError([FieldError("extenders", "none has filterVerb; want one that calls filter")])
    if url_prefix:
        indices = [index for index in indices if extenders[index].url_prefix.rstrip("/") == url_prefix.rstrip("/")]
        if not indices:
            raise ConfigError([FieldError("extenders", f"none has filterVerb and the urlPrefix {url_prefix}")])
    if len(indices) > 1 and port:
        indices = [index for index in indices if urlsplit(extenders[index].url_prefix).port == port] or indices
    if len(indices) > 1:
        prefixes = ", ".join(extenders[index].url_prefix for index in indices)
        raise ConfigError([FieldError("extenders", f"several have filterVerb ({prefixes}); want the urlPrefix of one")])
    return indices[0]


def _find_contradictions(extenders: Sequence[Extender], index: int) -> Iterator[FieldError]:
    """Yield the verbs of other extenders that have no effect because extender *index* leaves one node."""
    best_node_extender = extenders[index]
    if best_node_extender.managed_resources:
        return  # the other extenders decide about all other pods
    url_prefix = best_node_extender.url_prefix
    for other_index, other in enumerate(extenders):
        if other_index == index:
            continue
        if other.prioritize_verb:
            yield FieldError(
                f"extenders[{other_index}].prioritizeVerb",
                f"is never called: {url_prefix} leaves one node; remove it, or set --filter-answer=feasible",
            )
        if other.filter_verb and other_index > index:
            yield FieldError(
                f"extenders[{other_index}].filterVerb",
                f"can only reject the one node that {url_prefix} leaves; want it before extenders[{index}]",
            )
