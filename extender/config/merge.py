"""Merging of custom plugin sets with the default plugin sets.

Source: pkg/scheduler/apis/config/v1/default_plugins.go, mergePluginSet (1.36).
"""

from extender.config.model import Plugin, Plugins, PluginSet


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Merge the plugin set of each extension point, and of `multi_point`."""
    return Plugins(
        **{name: merge_plugin_set(getattr(default, name), getattr(custom, name)) for name in Plugins.__struct_fields__}
    )


def merge_plugin_set(default_set: PluginSet, custom_set: PluginSet) -> PluginSet:
    """Merge one plugin set.

    Default plugins that are disabled are dropped; `*` disables all. A default plugin that *custom_set* lists again
    keeps its position and takes the weight of *custom_set*. The other custom plugins follow in order. Duplicates are
    kept, because expansion reports them.
    """
    disabled_plugins = tuple(Plugin(plugin.name) for plugin in (*custom_set.disabled, *default_set.disabled))
    disabled_names = {plugin.name for plugin in disabled_plugins}
    custom_index = {plugin.name: index for index, plugin in enumerate(custom_set.enabled)}
    used_indices: set[int] = set()
    enabled_plugins: list[Plugin] = []
    for plugin in () if "*" in disabled_names else default_set.enabled:
        if plugin.name in disabled_names:
            continue
        index = custom_index.get(plugin.name)
        if index is None:
            enabled_plugins.append(plugin)
        else:
            enabled_plugins.append(custom_set.enabled[index])
            used_indices.add(index)
    enabled_plugins += (plugin for index, plugin in enumerate(custom_set.enabled) if index not in used_indices)
    return PluginSet(tuple(enabled_plugins), disabled_plugins)
