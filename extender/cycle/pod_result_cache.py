"""Cache PreFilter and PreScore results that depend only on the pod.

Cached and fresh results are equal; a property test compares them. Only results of plugins that implement
`CacheablePreFilter` or `CacheablePreScore` are cached.
"""

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from extender.cache.pod_info import PodInfo
from extender.framework.extension_points import PreFilterResult, PreScoreResult
from extender.framework.plugin_runner import PluginRunner

ResultT = TypeVar("ResultT", PreFilterResult, PreScoreResult)
PluginTuple = tuple[Any, ...]

_CACHEABLE_METHODS: Final = {"PreFilter": "pre_filter_is_cacheable", "PreScore": "pre_score_is_cacheable"}
"""The method, by extension point, that returns whether a result may be cached."""


class PodResultCache(Generic[ResultT]):
    """The cached results of one extension point of a profile, for the pods of one signature or one spec class.

    Only the results of the second pod are recorded. Recording takes as long as running the plugins, and many caches
    are used by only one pod. The class is not thread-safe.

    Args:
        plugins: the plugins of the extension point, in order.
        for_spec_class: whether the pods have the spec class in common, rather than the signature.

    Attributes:
        plugins_to_run: the plugins without a cached result, in order.
        cycle_state: the state of the plugins with a cached result, by plugin name; read-only.
        skipped_plugins: the names of the plugins whose cached result has `skip` set.
    """

    __slots__ = (
        "_for_spec_class",
        "_plugins",
        "_recorded_results",
        "_run_count",
        "cycle_state",
        "plugins_to_run",
        "skipped_plugins",
    )

    def __init__(self, plugins: PluginTuple, *, for_spec_class: bool = False) -> None:
        self.plugins_to_run = self._plugins = plugins
        self._for_spec_class = for_spec_class
        self.cycle_state: dict[str, Any] = {}
        self.skipped_plugins: frozenset[str] = frozenset()
        self._recorded_results: dict[str, ResultT | None] | None = None  # None while not recording
        self._run_count = 0

    def record(self, runner: PluginRunner, plugin: Any, pod: PodInfo, point: str, result: ResultT) -> None:
        """Record *result* of *plugin* for *pod* if it may be cached.

        The plugin must allow it, and the result must neither reject the pod nor exclude nodes.

        Raises:
            PluginError: the plugin's cache method failed.
        """
        if self._recorded_results is None:
            return
        method = getattr(plugin, _CACHEABLE_METHODS[point], None)
        if self._for_spec_class and not getattr(plugin, "cacheable_for_spec_class", False):
            method = None
        is_cacheable = (
            method is not None and _passes_all_nodes(result) and bool(runner.get_cache_key(plugin, point, method, pod))
        )
        self._recorded_results[plugin.name] = result if is_cacheable else None

    def finish_run(self) -> None:
        """Use the recorded results for the next pods. Call this only if no plugin ended the run early."""
        if self._recorded_results is None:
            self._run_count += 1
            if self._run_count == 1:
                self._recorded_results = {}
            return
        cacheable_results = {name: result for name, result in self._recorded_results.items() if result is not None}
        self.plugins_to_run = tuple(plugin for plugin in self._plugins if plugin.name not in cacheable_results)
        self.cycle_state = {name: result.state for name, result in cacheable_results.items()}
        self.skipped_plugins = frozenset(name for name, result in cacheable_results.items() if result.skip)
        self._recorded_results = None

    def get_plugins_after(self, plugin: Any) -> Sequence[Any]:
        """Return the plugins that run after *plugin*."""
        return self._plugins[self._plugins.index(plugin) + 1 :]


def get_pod_result_cache(pod: PodInfo, point: str, plugins: PluginTuple, *, enabled: bool) -> PodResultCache[Any]:
    """Return the cache of *plugins* at PreFilter or PreScore.

    It is that of the pod's signature, or of its spec class if *pod* is the signature's first pod.
    """
    if not enabled:
        return PodResultCache(plugins)
    signature = pod.signature
    # The key has the ids of the plugins, because a plugin may be unhashable. The cache keeps the plugins alive.
    key = point, *map(id, plugins)
    if pod.pod.metadata.name == signature.representative_pod.metadata.name:
        return signature.spec_class.get_or_create(key, lambda: PodResultCache[Any](plugins, for_spec_class=True))
    return signature.get_or_create(key, lambda: PodResultCache[Any](plugins))


def _passes_all_nodes(result: PreFilterResult | PreScoreResult) -> bool:
    """Return whether *result* neither rejects the pod nor excludes nodes."""
    return result.status is None and (isinstance(result, PreScoreResult) or result.node_names is None)
