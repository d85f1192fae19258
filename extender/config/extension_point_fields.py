"""The extension points: keys in a document, fields of the model, and Go interface names in messages."""

from dataclasses import dataclass
from typing import Final

from extender.config.model import Plugins, PluginSet


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """An extension point.

    Attributes:
        key: the key in a configuration, `preFilter`.
        field: the field of `Plugins`, `pre_filter`.
        interface: the name in kube-scheduler's messages, `PreFilterPlugin`.
    """

    key: str
    field: str
    interface: str

    def get_plugin_set(self, plugins: Plugins) -> PluginSet:
        """Return the plugin set of this extension point."""
        plugin_set: PluginSet = getattr(plugins, self.field)
        return plugin_set


# In kube-scheduler's order of expansion, because the error about an unknown plugin names the first extension point.
EXTENSION_POINTS: Final = (
    ExtensionPoint("preFilter", "pre_filter", "PreFilterPlugin"),
    ExtensionPoint("filter", "filter", "FilterPlugin"),
    ExtensionPoint("postFilter", "post_filter", "PostFilterPlugin"),
    ExtensionPoint("reserve", "reserve", "ReservePlugin"),
    ExtensionPoint("preScore", "pre_score", "PreScorePlugin"),
    ExtensionPoint("score", "score", "ScorePlugin"),
    ExtensionPoint("preBind", "pre_bind", "PreBindPlugin"),
    ExtensionPoint("bind", "bind", "BindPlugin"),
    ExtensionPoint("postBind", "post_bind", "PostBindPlugin"),
    ExtensionPoint("permit", "permit", "PermitPlugin"),
    ExtensionPoint("preEnqueue", "pre_enqueue", "PreEnqueuePlugin"),
    ExtensionPoint("queueSort", "queue_sort", "QueueSortPlugin"),
    ExtensionPoint("placementGenerate", "placement_generate", "PlacementGeneratePlugin"),
    ExtensionPoint("placementScore", "placement_score", "PlacementScorePlugin"),
)

PLACEMENT_POINTS: Final = frozenset({"placementGenerate", "placementScore"})
