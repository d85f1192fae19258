"""What plugins say about every pod of a shape, whatever the cluster is like: asked once a shape, not once a pod.

Kept and fresh answers are equal; a property test says so. Only plugins that declare `KeptPreFilter` or `KeptPreScore`
are kept.
"""

from collections.abc import Collection, Mapping
from typing import Any

from extender.cluster.pods import PodQuery
from extender.framework.runner import Runner

_LEARNT_AT = 2
"""The pod of a shape with which its answers are learnt. Not the first: where no two pods are alike, that costs and
gains nothing."""


class Foregone:
    """The answers of some plugins at PreFilter or PreScore about the pods of one shape. Not thread-safe.

    Attributes:
        asked: the plugins that have to be asked about each pod.
        notes: of those that need not, by name.
        skipped: the names of those that skip the pods.
    """

    __slots__ = ("_plugins", "_pods", "asked", "notes", "skipped")

    def __init__(self, plugins: tuple[Any, ...]) -> None:
        self._plugins = self.asked = plugins
        self.notes: dict[str, Any] = {}
        self.skipped: frozenset[str] = frozenset()
        self._pods = 0

    def learn(self, run: Runner, pod: PodQuery, point: str, notes: Mapping[str, Any], skipped: Collection[str]) -> None:
        """Keep the answers about *pod* of the plugins that let them be kept.

        Args:
            run: asks which.
            pod: every plugin has let it pass, on all nodes.
            point: `PreFilter` or `PreScore`.
            notes: the answers' notes by plugin, of those that have any.
            skipped: the plugins that skip the pod.

        Raises:
            PluginError: a plugin could not say whether its answer may be kept.
        """
        self._pods += 1
        if self._pods != _LEARNT_AT:
            return
        names = {plugin.name for plugin in self._plugins if _may_be_kept(run, plugin, pod, point)}
        self.asked = tuple(plugin for plugin in self._plugins if plugin.name not in names)
        self.notes = {name: noted for name, noted in notes.items() if name in names}
        self.skipped = frozenset(names.intersection(skipped))


_METHODS = {"PreFilter": "pre_filter_kept", "PreScore": "pre_score_kept"}


def _may_be_kept(run: Runner, plugin: Any, pod: PodQuery, point: str) -> bool:
    declared = getattr(plugin, _METHODS[point], None)
    return declared is not None and bool(run.key(plugin, point, declared, pod))


def foregone(pod: PodQuery, point: str, plugins: tuple[Any, ...], *, keep: bool) -> Foregone:
    """What is known of the answers of *plugins* at *point* about pods like *pod*; nothing, if none are to be kept."""
    if not keep:
        return Foregone(plugins)
    # Plugins need not be hashable. What is remembered holds the tuple, so no other will ever have its id.
    return pod.shape.remember((point, id(plugins)), lambda: Foregone(plugins))
