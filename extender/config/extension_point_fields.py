"""The names of the extension points in a configuration, in the class `Plugins` and in kube-scheduler's messages."""

from dataclasses import dataclass
from typing import Final

from extender.config.model import Plugins, PluginSet


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """The names of one extension point.

    Attributes:
        key: the key in a configuration, `preFilter`.
        field: the field of `Plugins`, `pre_filter`.
        interface: the Go interface in kube-scheduler's messages, `PreFilterPlugin`.
    """

    key: str
    field: str
    interface: str

    def get_plugin_set(self, plugins: Plugins) -> PluginSet:
        """Return the plugin set of this extension point."""
        plugin_set: PluginSet = getattr(plugins, self.field)
        return plugin_set


# kube-scheduler expands the extension points in this order. The error about an unknown multiPoint plugin names the
# first extension point that does not disable all multiPoint plugins.
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
    ExtensionPoint("podGroupPostFilter", "pod_group_post_filter", "PodGroupPostFilterPlugin"),
)

PLACEMENT_POINTS: Final = frozenset({"placementGenerate", "placementScore"})
