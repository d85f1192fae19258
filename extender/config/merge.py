"""Custom plugin sets laid over default ones, as kube-scheduler's defaulting does. Source: G028."""

from extender.config.model import Plugin, Plugins, PluginSet


def merge(default: Plugins, custom: Plugins) -> Plugins:
    """Each extension point, and `multi_point`, of *custom* merged into that of *default*."""
    return Plugins(
        **{name: merge_set(getattr(default, name), getattr(custom, name)) for name in Plugins.__struct_fields__}
    )


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One merged set.

    A disabled default plugin goes, all of them with `*`; one that *custom* lists again keeps its place and takes the
    weight given there; the other custom plugins follow in order. A plugin listed twice stays twice: expansion refuses
    it.
    """
    disabled = tuple(Plugin(plugin.name) for plugin in (*custom.disabled, *default.disabled))
    gone = {plugin.name for plugin in disabled}
    last = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    placed: set[int] = set()
    enabled: list[Plugin] = []
    for plugin in () if "*" in gone else default.enabled:
        if plugin.name in gone:
            continue
        index = last.get(plugin.name)
        if index is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[index])
            placed.add(index)
    enabled += (plugin for index, plugin in enumerate(custom.enabled) if index not in placed)
    return PluginSet(tuple(enabled), disabled)
