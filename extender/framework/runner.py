"""The only caller of plugins: times each call, checks what comes back, and names the plugin when something is wrong."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.snapshot import NodeView
from extender.framework.observer import Observer, Silent
from extender.framework.points import Named
from extender.framework.verdict import Code, Rejection, Status

T = TypeVar("T")


class PluginError(Exception):
    """A plugin raised, or answered with something that is no answer. Ends the attempt with the code Error; never the process.

    Attributes:
        plugin: its name.
        point: the extension point, `Filter`.
        detail: what went wrong, without the place.
    """

    def __init__(self, plugin: str, point: str, detail: str) -> None:
        self.plugin, self.point, self.detail = plugin, point, detail
        where = f'running "{plugin}" filter plugin' if point == "Filter" else f'running {point} plugin "{plugin}"'
        super().__init__(f"{where}: {detail}")

    @property
    def status(self) -> Status:
        """The fault as an answer: code Error, with the place it came from. Source: A056, A061, A063."""
        return Status(Code.ERROR, (str(self),), self.plugin)


class Runner:
    """Calls plugins of any profile."""

    __slots__ = ("_observer",)

    def __init__(self, observer: Observer | None = None) -> None:
        self._observer: Observer = observer or Silent()

    def call(self, plugin: Named, point: str, method: Callable[..., T], *args: Any) -> T:
        """What *method* of *plugin* answers.

        Raises:
            PluginError: it raised.
        """
        started = time.perf_counter()
        try:
            answer = method(*args)
        except Exception as wrong:
            self._observer.called(plugin.name, point, Code.ERROR, time.perf_counter() - started)
            raise PluginError(plugin.name, point, str(wrong) or type(wrong).__name__) from wrong
        code = answer.code if isinstance(answer, Status) else Code.SUCCESS
        self._observer.called(plugin.name, point, code, time.perf_counter() - started)
        return answer

    def expect(self, plugin: Named, point: str, kind: type[T], method: Callable[..., T], *args: Any) -> T:
        """As `call`, for answers that must be of *kind*.

        Raises:
            PluginError: it raised, or answered with something else.
        """
        answer = self.call(plugin, point, method, *args)
        if not isinstance(answer, kind):
            raise PluginError(plugin.name, point, f"answered with {_described(answer)}, want {kind.__name__}")
        return answer

    def filter(self, plugin: Any, pod: Any, nodes: NodeView, notes: Any) -> tuple[Rejection, ...]:
        """The groups *plugin* refuses among *nodes*.

        Raises:
            PluginError: it raised, or a mask does not fit the view.
        """
        answer = self.call(plugin, "Filter", plugin.filter, pod, nodes, notes)
        for rejection in answer:
            mask = rejection.nodes
            if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (len(nodes),):
                raise PluginError(
                    plugin.name, "Filter", f"a mask must be a bool array with one entry a node ({len(nodes)}), got {_described(mask)}"
                )
        return tuple(answer)

    def score(self, plugin: Any, pod: Any, nodes: NodeView, notes: Any) -> IntArray:
        """The raw scores of *nodes*, int64.

        Raises:
            PluginError: it raised, or the answer is not one whole, finite number a node.
        """
        return checked_scores(plugin, "Score", self.call(plugin, "Score", plugin.score, pod, nodes, notes), len(nodes))

    def normalize(self, plugin: Any, pod: Any, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:
        """*raw* brought to 0..100 by *plugin*.

        Raises:
            PluginError: as `score`.
        """
        answer = self.call(plugin, "NormalizeScore", plugin.normalize, pod, raw, nodes, notes)
        return checked_scores(plugin, "NormalizeScore", answer, len(nodes))


def checked_scores(plugin: Named, point: str, scores: Any, size: int) -> IntArray:
    """*scores* as int64, if they are one whole number a node.

    Raises:
        PluginError: wrong type, wrong length, or not finite.
    """
    if not isinstance(scores, np.ndarray) or scores.shape != (size,):
        raise PluginError(plugin.name, point, f"answered with {_described(scores)}, want an array of {size} scores, one a node")
    if scores.dtype == np.int64:
        return scores
    if scores.dtype.kind not in "iufb":
        raise PluginError(plugin.name, point, f"scores must be whole numbers, got {scores.dtype}")
    if scores.dtype.kind == "f" and not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise PluginError(plugin.name, point, f"score {scores[bad]} for node number {bad} is not a number")
    return scores.astype(np.int64)


def _described(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"an array of {thing.dtype} with shape {thing.shape}"
    return f"{thing!r}" if thing is None else f"{type(thing).__name__} {thing!r}"[:120]
