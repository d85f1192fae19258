"""The extension points: their keys in a document, their fields in the model, and Go's names for them in messages."""

from dataclasses import dataclass
from typing import Final

from extender.config.model import Plugins, PluginSet


@dataclass(frozen=True, slots=True)
class Point:
    """An extension point.

    Attributes:
        key: as a configuration writes it, `preFilter`.
        field: of `Plugins`, `pre_filter`.
        interface: as kube-scheduler's messages name it, `PreFilterPlugin`.
    """

    key: str
    field: str
    interface: str

    def of(self, plugins: Plugins) -> PluginSet:
        """The set *plugins* has for this point."""
        found: PluginSet = getattr(plugins, self.field)
        return found


# In the order in which kube-scheduler goes through them: the first to meet an unknown plugin names it.
POINTS: Final = (
    Point("preFilter", "pre_filter", "PreFilterPlugin"),
    Point("filter", "filter", "FilterPlugin"),
    Point("postFilter", "post_filter", "PostFilterPlugin"),
    Point("reserve", "reserve", "ReservePlugin"),
    Point("preScore", "pre_score", "PreScorePlugin"),
    Point("score", "score", "ScorePlugin"),
    Point("preBind", "pre_bind", "PreBindPlugin"),
    Point("bind", "bind", "BindPlugin"),
    Point("postBind", "post_bind", "PostBindPlugin"),
    Point("permit", "permit", "PermitPlugin"),
    Point("preEnqueue", "pre_enqueue", "PreEnqueuePlugin"),
    Point("queueSort", "queue_sort", "QueueSortPlugin"),
    Point("placementGenerate", "placement_generate", "PlacementGeneratePlugin"),
    Point("placementScore", "placement_score", "PlacementScorePlugin"),
)

PLACEMENT: Final = frozenset({"placementGenerate", "placementScore"})
