"""What plugins say about every pod of a shape, whatever the cluster is like: asked once a shape, not once a pod.

Kept and fresh answers are equal; a property test says so. Only plugins that declare `KeptPreFilter` or `KeptPreScore`
are kept.
"""

from typing import Any, Final, Generic, TypeVar

from extender.cluster.pods import PodQuery
from extender.framework.points import PreFiltered, PreScored
from extender.framework.runner import Runner

A = TypeVar("A", PreFiltered, PreScored)

_DECLARED: Final = {"PreFilter": "pre_filter_kept", "PreScore": "pre_score_kept"}
"""The method, by point, that says whether an answer may be kept."""


class Foregone(Generic[A]):
    """The answers of plugins at one point about the pods of one shape. Not thread-safe.

    They are learnt from the second pod of the shape that is asked about: where no two pods are alike, there is nothing
    to gain.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # By the plugin's id, since plugins need not be hashable; the plugin is held, so its id stays its own.
        self._known: dict[int, tuple[Any, A | None]] = {}

    def answer(self, plugin: Any) -> A | None:
        """What *plugin* says about every pod of the shape; None if it has to be asked."""
        known = self._known.get(id(plugin))
        return None if known is None else known[1]

    def learn(self, run: Runner, plugin: Any, pod: PodQuery, point: str, answer: A) -> None:
        """Keep *answer*, just given about *pod*, if *plugin* lets it be kept and it lets the pod pass as it is.

        Raises:
            PluginError: the plugin could not say whether it may be kept.
        """
        if id(plugin) in self._known:
            return
        declared = getattr(plugin, _DECLARED[point], None)
        may_be_kept = declared is not None and _plain(answer) and bool(run.key(plugin, point, declared, pod))
        self._known[id(plugin)] = plugin, answer if may_be_kept else None


class _Nothing(Foregone[Any]):
    """Where nothing is kept."""

    __slots__ = ()

    def learn(self, run: Runner, plugin: Any, pod: PodQuery, point: str, answer: Any) -> None:
        """Nothing."""


_NOTHING: Final = _Nothing()


def before_filter(pod: PodQuery, *, keep: bool) -> Foregone[PreFiltered]:
    """The answers of PreFilter about pods like *pod*."""
    return _about(pod, "PreFilter of every pod", keep=keep)


def before_score(pod: PodQuery, *, keep: bool) -> Foregone[PreScored]:
    """The answers of PreScore about pods like *pod*."""
    return _about(pod, "PreScore of every pod", keep=keep)


def _about(pod: PodQuery, key: str, *, keep: bool) -> Foregone[Any]:
    """What the shape of *pod* remembers under *key*; nothing for the pod it was made of, perhaps the only one."""
    if not keep or pod.pod.metadata.name == pod.shape.pod.metadata.name:
        return _NOTHING
    return pod.shape.remember(key, Foregone[Any])


def _plain(answer: PreFiltered | PreScored) -> bool:
    """Whether it lets the pod pass and leaves all nodes."""
    return answer.status is None and (isinstance(answer, PreScored) or answer.nodes is None)
