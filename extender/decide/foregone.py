"""What plugins say about every pod of a shape, or of its kin, whatever the cluster is like: asked once, not once a pod.

Kept and fresh answers are equal; a property test says so. Only plugins that declare `KeptPreFilter` or `KeptPreScore`
are kept.
"""

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

from extender.cluster.pods import PodQuery
from extender.framework.points import PreFiltered, PreScored
from extender.framework.runner import Runner

A = TypeVar("A", PreFiltered, PreScored)
Plugins = tuple[Any, ...]

_DECLARED: Final = {"PreFilter": "pre_filter_kept", "PreScore": "pre_score_kept"}
"""The method, by point, that says whether an answer may be kept."""


class Round(Generic[A]):
    """The plugins of one point of a profile, and what is known of their answers about pods of one shape or one kin.

    It is learnt from the second pod that is asked about, as learning costs as much as asking. Not thread-safe.

    Args:
        plugins: in order.
        of_kin: the pods have no more in common than `extender.cluster.kin` says.

    Attributes:
        asked: the plugins that have to be asked, in order.
        notes: of those that need not be asked, by name; never to be written to.
        skipped: the names of those that need not be asked and skip the pod.
    """

    __slots__ = ("_answers", "_of_kin", "_plugins", "_turns", "asked", "notes", "skipped")

    def __init__(self, plugins: Plugins, *, of_kin: bool = False) -> None:
        self.asked = self._plugins = plugins
        self._of_kin = of_kin
        self.notes: dict[str, Any] = {}
        self.skipped: frozenset[str] = frozenset()
        self._answers: dict[str, A | None] | None = None  # while it does not learn
        self._turns = 0

    def learn(self, run: Runner, plugin: Any, pod: PodQuery, point: str, answer: A) -> None:
        """Keep *answer*, just given about *pod*, if *plugin* lets it be kept and it lets the pod pass as it is.

        Raises:
            PluginError: the plugin could not say whether it may be kept.
        """
        if self._answers is None:
            return
        declared = getattr(plugin, _DECLARED[point], None)
        if self._of_kin and not getattr(plugin, "kept_for_kin", False):
            declared = None
        may_be_kept = declared is not None and _plain(answer) and bool(run.key(plugin, point, declared, pod))
        self._answers[plugin.name] = answer if may_be_kept else None

    def over(self) -> None:
        """All plugins were asked, and none of them ended the round: what was learnt counts for the next pod."""
        if self._answers is None:
            self._turns += 1
            if self._turns == 1:
                self._answers = {}
            return
        kept = {name: answer for name, answer in self._answers.items() if answer is not None}
        self.asked = tuple(plugin for plugin in self._plugins if plugin.name not in kept)
        self.notes = {name: answer.notes for name, answer in kept.items()}
        self.skipped = frozenset(name for name, answer in kept.items() if answer.skip)
        self._answers = None

    def after(self, plugin: Any) -> Sequence[Any]:
        """The plugins whose turn comes after *plugin*."""
        return self._plugins[self._plugins.index(plugin) + 1 :]


def before_filter(pod: PodQuery, plugins: Plugins, *, keep: bool) -> Round[PreFiltered]:
    """PreFilter of *plugins* about pods like *pod*."""
    return _about(pod, "PreFilter", plugins, keep=keep)


def before_score(pod: PodQuery, plugins: Plugins, *, keep: bool) -> Round[PreScored]:
    """PreScore of *plugins* about pods like *pod*."""
    return _about(pod, "PreScore", plugins, keep=keep)


def _about(pod: PodQuery, point: str, plugins: Plugins, *, keep: bool) -> Round[Any]:
    """What the shape of *pod* remembers; its kin for the pod it was made of, perhaps the only one."""
    if not keep:
        return Round(plugins)
    shape = pod.shape
    # By the ids of the plugins, since they need not be hashable; the round holds them, so the ids stay theirs.
    key = point, *map(id, plugins)
    if pod.pod.metadata.name == shape.pod.metadata.name:
        return shape.kin.remember(key, lambda: Round[Any](plugins, of_kin=True))
    return shape.remember(key, lambda: Round[Any](plugins))


def _plain(answer: PreFiltered | PreScored) -> bool:
    """Whether it lets the pod pass and leaves all nodes."""
    return answer.status is None and (isinstance(answer, PreScored) or answer.nodes is None)
