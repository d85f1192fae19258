"""Recheck a node immediately before a pod is bound to it.

A node may be deleted, cordoned or tainted while the pod waits for Permit, for volumes or for the client's rate limit.
The API server accepts any node name, and kube-scheduler binds the pod nevertheless. Here the attempt fails, and the pod
is retried. A node is rechecked only if it changed.
"""

from dataclasses import replace

from extender.api.kinds.node import Node
from extender.cache.cache import Cache
from extender.cache.pod_info import PodInfo
from extender.cycle.diagnosis import find_nodes_that_pass_filters
from extender.cycle.plugin_runtime import PluginRuntime
from extender.framework.extension_points import DependsOn
from extender.framework.profiles import Profile
from extender.framework.status import Status, error_status


def recheck_node(
    pod: PodInfo, name: str, node_at_decision: Node | None, cache: Cache, profile: Profile, runtime: PluginRuntime
) -> Status | None:
    """Return an error if the node named *name* no longer fits *pod*, else None.

    *node_at_decision* is the node object in the scheduling cycle. Only filters that depend on the node object alone are
    run. Other filters would count *pod* itself, which is already assumed on the node.
    """
    node = cache.get_node(name)
    if node is None:
        return error_status(f'node "{name}" was deleted before the pod was bound to it')
    if node is node_at_decision:
        return None
    node_filter_plugins = tuple(
        plugin for plugin in profile.filter_plugins if getattr(plugin, "filter_depends_on", None) is DependsOn.NODE
    )
    names = {plugin.name for plugin in node_filter_plugins}
    pre_filter_plugins = tuple(plugin for plugin in profile.pre_filter_plugins if plugin.name in names)
    node_profile = replace(profile, filter_plugins=node_filter_plugins, pre_filter_plugins=pre_filter_plugins)
    with cache.read() as snapshot:
        diagnosis = find_nodes_that_pass_filters(pod, snapshot, node_profile, runtime, only_nodes=frozenset({name}))
    if diagnosis.has_feasible_node:
        return None
    reasons = ", ".join(diagnosis.count_reasons()) or diagnosis.format_message()
    return error_status(f'node "{name}" changed before the pod was bound to it: {reasons}')
