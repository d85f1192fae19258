"""The only caller of plugins: times each call, checks what comes back, and names the plugin when something is wrong."""

import time
from collections.abc import Callable, Hashable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.snapshot import NodeView, Snapshot
from extender.framework.normalize import MAX_SCORE
from extender.framework.observer import Observer, Silent
from extender.framework.points import (
    Named,
    Permission,
    Plan,
    PostFiltered,
    PreFiltered,
    PreFlight,
    PreScored,
)
from extender.framework.verdict import Code, Reason, Rejection, Status

T = TypeVar("T")


SCORE_RANGE = "ScoreRange"
"""Not a point, but where final scores are held against their range."""

_PLACES = {
    "Filter": 'running "{plugin}" filter plugin',
    "Score": 'running Score plugins: plugin "{plugin}" failed with',
    "NormalizeScore": 'running Normalize on Score plugins: plugin "{plugin}" failed with',
    SCORE_RANGE: "applying score defaultWeights on Score plugins",
    "PreBindPreFlight": 'running PreBindPreFlight "{plugin}"',
}
"""How kube-scheduler names the place an error came from, where it departs from its own habit. Source: A061, A064."""


class PluginError(Exception):
    """A plugin raised, or answered with something that is no answer. Ends the attempt, never the process.

    Attributes:
        plugin: its name.
        point: the extension point, `Filter`.
        detail: what went wrong, without the place.
    """

    def __init__(self, plugin: str, point: str, detail: str) -> None:
        self.plugin, self.point, self.detail = plugin, point, detail
        place = _PLACES.get(point, 'running {point} plugin "{plugin}"')
        where = place.format(point=point, plugin=plugin)
        super().__init__(f"{where}: {detail}")

    @property
    def status(self) -> Status:
        """The fault as an answer: code Error, with the place it came from. Source: A056, A061, A063."""
        return Status(Code.ERROR, (str(self),), self.plugin)


_REFUSING = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR))
_PLAIN = frozenset((Exception, LookupError, RuntimeError, ValueError))
"""Exceptions that this package raises with a whole sentence; the text of others says little without their name."""


def told(wrong: BaseException) -> str:
    """What *wrong* says, in one line that stands on its own."""
    text, kind = " ".join(str(wrong).split()), type(wrong)
    if not text:
        return kind.__name__
    return text if kind in _PLAIN and _ours(wrong.__traceback__) else f"{kind.__name__}: {text}"


def _ours(trace: TracebackType | None) -> bool:
    """Whether it was raised in this package, not in a plugin of somebody else's."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("extender.")


class Runner:
    """Calls plugins of any profile."""

    __slots__ = ("_heard", "_observer")

    def __init__(self, observer: Observer | None = None) -> None:
        self._heard = observer is not None  # without anybody to tell, calls are not timed
        self._observer: Observer = observer or Silent()

    @staticmethod
    def begin() -> float:
        """The moment a round of calls begins, for `passed`."""
        return time.perf_counter()

    def passed(self, profile: str, point: str, status: Status | None, began: float) -> None:
        """All plugins of an extension point were asked about one pod and came to *status*. Source: H010."""
        code = Code.SUCCESS if status is None else status.code
        self._observer.passed(profile, point, code, time.perf_counter() - began)

    def call(self, plugin: Named, point: str, method: Callable[..., T], *args: Any) -> T:
        """What *method* of *plugin* answers. How a plan ends is told by whoever carries it out, see `ended`.

        Raises:
            PluginError: it raised.
        """
        started = time.perf_counter() if self._heard else 0.0
        try:
            answer = method(*args)
        except Exception as wrong:
            self._observer.called(plugin.name, point, Code.ERROR, time.perf_counter() - started)
            raise PluginError(plugin.name, point, told(wrong)) from wrong
        if self._heard and not isinstance(answer, Plan):
            self._observer.called(plugin.name, point, _code(answer), time.perf_counter() - started)
        return answer

    def ended(self, plugin: Named, point: str, status: Status | None, began: float) -> None:
        """What *plugin* planned at *point* was carried out, and came to *status*; asking it is part of the time."""
        code = Code.SUCCESS if status is None else status.code
        self._observer.called(plugin.name, point, code, time.perf_counter() - began)

    def expect(self, plugin: Named, point: str, kind: type[T], method: Callable[..., T], *args: Any) -> T:
        """As `call`, for answers that must be of *kind*.

        Raises:
            PluginError: it raised, or answered with something else.
        """
        answer = self.call(plugin, point, method, *args)
        if not isinstance(answer, kind):
            raise _unexpected(plugin, point, kind, answer)
        return answer

    def pre_filter(self, plugin: Any, pod: Any, cluster: Snapshot) -> PreFiltered:
        """What *plugin* says before any node is looked at.

        Raises:
            PluginError: it raised, or the answer or a part of it is of a wrong type.
        """
        answer = self.call(plugin, "PreFilter", plugin.pre_filter, pod, cluster)
        if not isinstance(answer, PreFiltered):
            raise _unexpected(plugin, "PreFilter", PreFiltered, answer)
        if answer.nodes is not None and not isinstance(answer.nodes, frozenset):
            raise PluginError(
                plugin.name, "PreFilter", f"nodes are {_described(answer.nodes)}, want a frozenset of names or None"
            )
        if answer.status is not None:
            self._check_status(plugin, "PreFilter", answer.status)
        return answer

    def pre_score(self, plugin: Any, pod: Any, nodes: NodeView) -> PreScored:
        """What *plugin* says before any node is scored.

        Raises:
            PluginError: it raised, or the answer or a part of it is of a wrong type.
        """
        answer = self.call(plugin, "PreScore", plugin.pre_score, pod, nodes)
        if not isinstance(answer, PreScored):
            raise _unexpected(plugin, "PreScore", PreScored, answer)
        if answer.status is not None:
            self._check_status(plugin, "PreScore", answer.status)
        return answer

    def pre_enqueue(self, plugin: Any, pod: Any, cluster: Snapshot) -> Status | None:
        """Whether *plugin* lets the pod into the queue.

        Raises:
            PluginError: it raised, or the answer is no status.
        """
        answer = self.call(plugin, "PreEnqueue", plugin.pre_enqueue, pod, cluster)
        return self._check_status(plugin, "PreEnqueue", answer)

    def _check_status(self, plugin: Named, point: str, status: Any) -> Status | None:
        """*status* if it is one.

        Raises:
            PluginError: it is something else, or its reasons are no texts.
        """
        if status is None:
            return None
        if not isinstance(status, Status):
            raise PluginError(plugin.name, point, f"the status is {_described(status)}, want a Status or None")
        reasons: Any = status.reasons
        if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
            raise PluginError(
                plugin.name, point, f"the reasons are {_described(status.reasons)}, want a tuple of texts"
            )
        return status

    def key(self, plugin: Any, point: str, method: Callable[[Any], Hashable | None], pod: Any) -> Hashable | None:
        """What the answer for *pod* is kept under. Not timed: keys are cheap.

        Raises:
            PluginError: it raised, or the answer cannot be hashed.
        """
        try:
            key = method(pod)
            hash(key)
        except Exception as wrong:
            raise PluginError(plugin.name, point, f"{_key_name(method)}: {told(wrong)}") from wrong
        return key

    def filter(self, plugin: Any, pod: Any, nodes: NodeView, notes: Any) -> tuple[Rejection, ...]:
        """The groups *plugin* refuses among *nodes*.

        Raises:
            PluginError: it raised, or the answer is no sequence of rejections, or a mask does not fit the view.
        """
        return _checked_rejections(plugin, self.call(plugin, "Filter", plugin.filter, pod, nodes, notes), len(nodes))

    def filter_apart(
        self, plugin: Any, pod: Any, nodes: NodeView, notes: Any, others: PodBatch, by: IntArray
    ) -> tuple[Rejection, ...]:
        """The groups *plugin* refuses among *nodes*, each imagined on its own: see `points.ApartFilter`.

        Raises:
            PluginError: as `filter`.
        """
        answer = self.call(plugin, "Filter", plugin.filter_apart, pod, nodes, notes, others, by)
        return _checked_rejections(plugin, answer, len(nodes))

    def score(self, plugin: Any, pod: Any, nodes: NodeView, notes: Any) -> IntArray:
        """The raw scores of *nodes*, int64, of any size and sign.

        Raises:
            PluginError: it raised, or the answer is not one whole, finite number a node.
        """
        answer = self.call(plugin, "Score", plugin.score, pod, nodes, notes)
        return checked_scores(plugin, "Score", answer, len(nodes))

    def normalize(self, plugin: Any, pod: Any, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:
        """*raw* brought to 0..100 by *plugin*.

        Raises:
            PluginError: as `score`.
        """
        answer = self.call(plugin, "NormalizeScore", plugin.normalize, pod, raw, nodes, notes)
        return checked_scores(plugin, "NormalizeScore", answer, len(nodes))


def _unexpected(plugin: Named, point: str, kind: type[Any], answer: Any) -> PluginError:
    """That *answer* is not of *kind*."""
    return PluginError(plugin.name, point, f"answered with {_described(answer)}, want {kind.__name__}")


def _code(answer: Any) -> Code:
    """What an answer of any point comes to; of groups of refused nodes it is the code of the first. Source: H012.

    The answer need not have been checked yet.
    """
    if answer is None or type(answer) is np.ndarray or (type(answer) is tuple and not answer):  # nearly all
        return Code.SUCCESS
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PreFiltered | PreScored | PreFlight) and answer.skip:
        return Code.SKIP
    if isinstance(answer, PreFiltered | PreScored | PostFiltered | Permission):
        return Code.SUCCESS if answer.status is None else answer.status.code
    if isinstance(answer, tuple | list):
        return next((each.reason.code for each in answer if _refuses_any(each)), Code.SUCCESS)
    return Code.SUCCESS


def _refuses_any(group: Any) -> bool:
    """Whether it is a group of nodes with a reason, and not an empty one."""
    proper = type(group) is Rejection and type(group.reason) is Reason and type(group.nodes) is np.ndarray
    return proper and bool(group.nodes.any())


def first_outlier(scores: IntArray) -> int | None:
    """The first position with a score outside the range of final scores; None if there is none. Source: A066."""
    if len(scores) == 1:
        return None if 0 <= scores.item() <= MAX_SCORE else 0
    if not len(scores) or scores.view(np.uint64).max() <= MAX_SCORE:  # unsigned, negative ones are the greatest
        return None
    return int(np.flatnonzero((scores < 0) | (scores > MAX_SCORE))[0])


def out_of_range(plugin: Named, score: int) -> PluginError:
    """That the final *score* of a node is none. Source: A066."""
    said = f'plugin "{plugin.name}" returns an invalid score {score}'
    return PluginError(
        plugin.name, SCORE_RANGE, f"{said}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    )


def _checked_rejections(plugin: Named, answer: Any, size: int) -> tuple[Rejection, ...]:
    """*answer* as a tuple of rejections of *size* nodes.

    Raises:
        PluginError: it is no sequence of rejections, or a mask does not fit the view.
    """
    if type(answer) is not tuple:
        answer = _rejections(plugin, answer)
    for rejection in answer:
        if type(rejection) is not Rejection:
            raise PluginError(plugin.name, "Filter", _no_rejection(answer, rejection))
        mask, reason = rejection
        if type(mask) is not np.ndarray or mask.dtype != np.bool_ or mask.shape != (size,):
            detail = f"a mask must be a bool array with one entry a node ({size}), got {_described(mask)}"
            raise PluginError(plugin.name, "Filter", detail)
        if type(reason) is not Reason or type(reason.text) is not str or not reason.text or not _refuses(reason.code):
            raise PluginError(plugin.name, "Filter", _no_reason(reason))
    checked: tuple[Rejection, ...] = answer
    return checked


def checked_scores(plugin: Named, point: str, scores: Any, size: int) -> IntArray:
    """*scores* as int64, if they are one whole number a node.

    Raises:
        PluginError: wrong type, wrong length, or not whole.
    """
    if not isinstance(scores, np.ndarray) or scores.shape != (size,):
        raise PluginError(
            plugin.name, point, f"answered with {_described(scores)}, want an array of {size} scores, one a node"
        )
    if scores.dtype == np.int64:
        return scores
    if scores.dtype.kind == "f" and not np.isfinite(scores).all():
        bad = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise PluginError(plugin.name, point, f"the score of node number {bad} is {scores[bad]}, want a whole number")
    if scores.dtype.kind not in "iu" or (scores.dtype.kind == "u" and scores.max(initial=0) > np.iinfo(np.int64).max):
        raise PluginError(plugin.name, point, f"scores are {scores.dtype}, want int64: write scores.astype(np.int64)")
    return scores.astype(np.int64)


def _key_name(method: Any) -> str:
    return str(getattr(method, "__name__", "its key"))


def _refuses(code: Any) -> bool:
    return type(code) is Code and code in _REFUSING


def _rejections(plugin: Named, answer: Any) -> tuple[Any, ...]:
    """*answer* as a tuple.

    Raises:
        PluginError: it is nothing that holds rejections.
    """
    if isinstance(answer, list) or (isinstance(answer, tuple) and type(answer) is not Rejection):
        return tuple(answer)
    if isinstance(answer, Rejection):
        detail = "answered with one Rejection, want a tuple of them: write (Rejection(...),)"
    elif isinstance(answer, Iterator):
        detail = f"answered with a {type(answer).__name__}, want a tuple: return the whole answer, do not yield it"
    else:
        detail = f"answered with {_described(answer)}, want a tuple of Rejections, empty to refuse no node"
    raise PluginError(plugin.name, "Filter", detail)


def _no_rejection(answer: tuple[Any, ...], item: Any) -> str:
    number = next(number for number, each in enumerate(answer) if each is item)
    return f"item {number} of the answer is {_described(item)}, want a Rejection"


def _no_reason(reason: Any) -> str:
    if type(reason) is not Reason:
        return f'the reason is {_described(reason)}, want Reason("text", Code.UNSCHEDULABLE)'
    if type(reason.text) is not str or not reason.text:
        return f"the text of a reason is {_described(reason.text)}, want some words"
    return f"the code of a reason is {_described(reason.code)}, want UNSCHEDULABLE, UNRESOLVABLE or ERROR"


def _described(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"an array of {thing.dtype} with shape {thing.shape}"
    return "None" if thing is None else f"{type(thing).__name__} {thing!r}"[:120]
