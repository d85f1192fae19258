"""Call plugins, measure the duration of the calls, and validate the results."""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, get_args

import numpy as np

from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import IntArray
from extender.framework.api_plan import ApiPlan
from extender.framework.binding_points import PermitResult, PreBindPreFlightResult
from extender.framework.extension_points import NamedPlugin, PostFilterResult, PreFilterResult, PreScoreResult
from extender.framework.normalize import MAX_SCORE
from extender.framework.observer import ObservedEvent, PluginObserver
from extender.framework.plugin_errors import (
    describe_value,
    find_source_location,
    format_exception,
    get_defining_module,
    plugin_exceptions,
)
from extender.framework.status import Code, Reason, Rejection, Status, reject_all

T = TypeVar("T")


SCORE_RANGE = "ScoreRange"
"""The name of the range check of final scores. Errors have this name in place of an extension point."""

_ERROR_PREFIXES = {
    "Filter": 'running "{plugin}" filter plugin',
    "Score": 'running Score plugins: plugin "{plugin}" failed with',
    "NormalizeScore": 'running Normalize on Score plugins: plugin "{plugin}" failed with',
    SCORE_RANGE: "applying score defaultWeights on Score plugins",
    "PreBindPreFlight": 'running PreBindPreFlight "{plugin}"',
}
"""The prefixes of kube-scheduler's error messages that differ from its usual prefix.

Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunFilterPlugins, frameworkImpl.RunScorePlugins
(1.36).
"""


class PluginError(Exception):
    """A plugin raised or returned an invalid result. The error ends the attempt, never the process.

    Attributes:
        extension_point: the name of the extension point, such as `Filter`.
        detail: the error message without its prefix.
    """

    def __init__(self, plugin: str, extension_point: str, detail: str) -> None:
        self.plugin, self.extension_point, self.detail = plugin, extension_point, detail
        template = _ERROR_PREFIXES.get(extension_point, 'running {point} plugin "{plugin}"')
        prefix = template.format(point=extension_point, plugin=plugin)
        super().__init__(f"{prefix}: {detail or 'its status has no reason'}")

    @property
    def status(self) -> Status:
        """The error as a status with the code ERROR and the whole message.

        Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunPreFilterPlugins,
        frameworkImpl.RunFilterPlugins, frameworkImpl.RunPreScorePlugins (1.36).
        """
        return Status(Code.ERROR, (str(self),), self.plugin)

    def reject_all(self, count: int) -> tuple[Rejection, ...]:
        """Reject all of *count* nodes with the error as the reason."""
        return reject_all(count, Reason(self.detail, Code.ERROR))


OPTIONAL_STATUS: Final = Status | None

_REJECTION_CODES = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING, Code.ERROR))


ExceptionObserver = Callable[[PluginError, BaseException], None]
"""Called with the error of a plugin call, and the exception that the plugin raised, with its traceback."""


class PluginRunner:
    """Calls the plugins of any profile.

    Args:
        observers: receive the duration and the code of each call, in order. Without observers, calls are not timed.
        on_exception: called when a plugin raises; must not raise.
    """

    def __init__(self, observers: Iterable[PluginObserver] = (), on_exception: ExceptionObserver | None = None) -> None:
        self._on_exception = on_exception
        self._observers = tuple(observers)

    def add_observer(self, observer: PluginObserver) -> None:
        """Let another observer receive all calls from now on."""
        self._observers += (observer,)

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """Let no observer receive the calls in the block, for runs that kube-scheduler does not make and count."""
        observers, self._observers = self._observers, ()
        try:
            yield
        finally:
            self._observers = observers

    @staticmethod
    def start_timer() -> float:
        """Return the start time of an extension point, for `observe_extension_point`."""
        return time.perf_counter()

    def observe_extension_point(self, profile: str, point: str, status: Status | None, start_time: float) -> None:
        """Observe that the plugins of an extension point ran for one pod, and how long they took.

        Source: pkg/scheduler/metrics/metrics.go, FrameworkExtensionPointDuration (1.36).
        """
        code, seconds = Code.SUCCESS if status is None else status.code, time.perf_counter() - start_time
        for observer in self._observers:
            observer.observe_extension_point(profile, point, code, seconds)

    def observe_event(self, event: ObservedEvent, labels: tuple[str, ...], value: float) -> None:
        """Pass *event* to the observers."""
        for observer in self._observers:
            observer.observe_event(event, labels, value)

    def observe_duration(self, event: ObservedEvent, labels: tuple[str, ...], start_time: float) -> None:
        """Pass *event* to the observers, with the seconds since *start_time* (see `start_timer`)."""
        self.observe_event(event, labels, time.perf_counter() - start_time)

    def call(self, plugin: NamedPlugin, point: str, method: Callable[..., T], *args: Any) -> T:
        """Call *method* of *plugin* and observe the call. If it returns an `ApiPlan`, use `observe_plan` afterwards.

        Raises:
            PluginError: the plugin raised.
        """
        start_time = time.perf_counter() if self._observers else 0.0
        try:
            result = method(*args)
        except plugin_exceptions() as error:
            self._observe_call(plugin, point, Code.ERROR, start_time)
            raise self.make_error(plugin, point, error) from error
        except KeyboardInterrupt as error:
            if location := find_source_location(error.__traceback__, get_defining_module(plugin)):
                error.add_note(f'stopped in {point} of plugin "{plugin.name}" ({location})')
            raise
        if self._observers and not isinstance(result, ApiPlan):
            seconds, code = time.perf_counter() - start_time, _get_result_code(result)
            for observer in self._observers:
                observer.observe_plugin_call(plugin.name, point, code, seconds)
        return result

    def _observe_call(self, plugin: NamedPlugin, point: str, code: Code, start_time: float) -> None:
        seconds = time.perf_counter() - start_time
        for observer in self._observers:
            observer.observe_plugin_call(plugin.name, point, code, seconds)

    def observe_plan(self, plugin: NamedPlugin, point: str, status: Status | None, start_time: float) -> None:
        """Observe the execution of an `ApiPlan` of *plugin*; the duration includes the call that returned the plan."""
        self._observe_call(plugin, point, Code.SUCCESS if status is None else status.code, start_time)

    def call_typed(self, plugin: NamedPlugin, point: str, result_type: Any, method: Callable[..., T], *args: Any) -> T:
        """Call *method* of *plugin*, which must return a *result_type*: a type, or a union of types.

        Raises:
            PluginError: the plugin raised or returned another type.
        """
        result = self.call(plugin, point, method, *args)
        if not isinstance(result, result_type):
            names = (kind.__name__.removesuffix("Type") for kind in get_args(result_type) or (result_type,))
            raise PluginError(plugin.name, point, f"returned {describe_value(result)}, want {' or '.join(names)}")
        return result

    def pre_filter(self, plugin: Any, pod: Any, snapshot: Snapshot) -> PreFilterResult:
        """Run PreFilter of *plugin*.

        Raises:
            PluginError: the plugin raised or returned another type.
        """
        method = plugin.pre_filter
        result: PreFilterResult = self.call_typed(plugin, "PreFilter", PreFilterResult, method, pod, snapshot)
        return result

    def pre_score(self, plugin: Any, pod: Any, nodes: NodeView) -> PreScoreResult:
        """Run PreScore of *plugin*.

        Raises:
            PluginError: the plugin raised or returned another type.
        """
        result: PreScoreResult = self.call_typed(plugin, "PreScore", PreScoreResult, plugin.pre_score, pod, nodes)
        return result

    def pre_enqueue(self, plugin: Any, pod: Any, snapshot: Snapshot) -> Status | None:
        """Run PreEnqueue of *plugin*.

        Raises:
            PluginError: the plugin raised, or the result is no status.
        """
        status: Status | None = self.call_typed(
            plugin, "PreEnqueue", OPTIONAL_STATUS, plugin.pre_enqueue, pod, snapshot
        )
        return status

    def get_cache_key(
        self, plugin: Any, point: str, method: Callable[[Any], Hashable | None], pod: Any
    ) -> Hashable | None:
        """Return the cache key of *pod*. The call is not observed, because keys are cheap.

        Raises:
            PluginError: the plugin raised, or the key cannot be hashed.
        """
        try:
            key = method(pod)
            hash(key)
        except plugin_exceptions() as error:
            raise self.make_error(plugin, point, error, f"{getattr(method, '__name__', 'its key')}: ") from error
        return key

    def make_error(self, plugin: NamedPlugin, point: str, error: BaseException, prefix: str = "") -> PluginError:
        """Return the error that *plugin* raised *error*, and report the exception to `on_exception`."""
        plugin_error = PluginError(plugin.name, point, prefix + format_exception(error, get_defining_module(plugin)))
        if self._on_exception is not None:
            self._on_exception(plugin_error, error)
        return plugin_error

    def filter(self, plugin: Any, pod: Any, nodes: NodeView, state: Any) -> tuple[Rejection, ...]:
        """Run Filter of *plugin* on *nodes*.

        Raises:
            PluginError: the plugin raised, the result is no sequence of rejections, or a mask does not fit the view.
        """
        return _check_rejections(plugin, self.call(plugin, "Filter", plugin.filter, pod, nodes, state), len(nodes))

    def score(self, plugin: Any, pod: Any, nodes: NodeView, state: Any) -> IntArray:
        """Return the raw scores of *nodes*: any int64.

        Raises:
            PluginError: the plugin raised, or the result is not one whole, finite number for each node.
        """
        scores = self.call(plugin, "Score", plugin.score, pod, nodes, state)
        return check_scores(plugin, "Score", scores, len(nodes))

    def normalize_score(self, plugin: Any, pod: Any, scores: IntArray, nodes: NodeView, state: Any) -> IntArray:
        """Return the raw *scores* as normalized by *plugin*.

        Raises:
            PluginError: as `score`.
        """
        normalized = self.call(plugin, "NormalizeScore", plugin.normalize_score, pod, scores, nodes, state)
        return check_scores(plugin, "NormalizeScore", normalized, len(nodes))


def _get_result_code(result: Any) -> Code:
    """Return the code of an unvalidated result of any extension point. For rejections, this is the code of the first.

    Source: pkg/scheduler/metrics/metrics.go, PluginExecutionDuration (1.36).
    """
    if result is None or type(result) is np.ndarray or (type(result) is tuple and not result):  # most calls
        return Code.SUCCESS
    if isinstance(result, Status):
        return result.code
    if isinstance(result, PreFilterResult | PreScoreResult | PreBindPreFlightResult) and result.skip:
        return Code.SKIP
    if isinstance(result, PreFilterResult | PreScoreResult | PostFilterResult | PermitResult):
        return Code.SUCCESS if result.status is None else result.status.code
    if isinstance(result, tuple | list):
        return next((item.reason.code for item in result if _rejects_a_node(item)), Code.SUCCESS)
    return Code.SUCCESS


def _rejects_a_node(item: Any) -> bool:
    """Return whether *item* is a valid rejection of at least one node."""
    is_valid = type(item) is Rejection and type(item.reason) is Reason and type(item.nodes) is np.ndarray
    return is_valid and bool(item.nodes.any())


def find_first_out_of_range(scores: IntArray) -> int | None:
    """Return the position of the first score outside the range of final scores; None if all are in range.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """
    if len(scores) == 1:
        return None if 0 <= scores.item() <= MAX_SCORE else 0
    if not len(scores) or scores.view(np.uint64).max() <= MAX_SCORE:  # as unsigned numbers, negative ones are large
        return None
    return int(np.flatnonzero((scores < 0) | (scores > MAX_SCORE))[0])


def make_out_of_range_error(plugin: NamedPlugin, score: int) -> PluginError:
    """Return the error of a final *score* out of range.

    Source: pkg/scheduler/framework/runtime/framework.go, frameworkImpl.RunScorePlugins (1.36).
    """
    detail = f'plugin "{plugin.name}" returns an invalid score {score}'
    return PluginError(
        plugin.name, SCORE_RANGE, f"{detail}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    )


def _check_rejections(plugin: NamedPlugin, result: Any, node_count: int) -> tuple[Rejection, ...]:
    """Return *result* as a tuple of rejections of *node_count* nodes.

    Raises:
        PluginError: it is no sequence of rejections, or a mask does not fit the view.
    """
    if type(result) is not tuple:
        result = _convert_to_tuple(plugin, result)
    for rejection in result:
        if type(rejection) is not Rejection:
            raise PluginError(plugin.name, "Filter", _describe_bad_rejection(result, rejection))
        mask, reason = rejection
        if type(mask) is not np.ndarray or mask.dtype != np.bool_ or mask.shape != (node_count,):
            detail = f"a mask must be a bool array with one entry a node ({node_count}), got {describe_value(mask)}"
            raise PluginError(plugin.name, "Filter", detail)
        has_text = type(reason) is Reason and type(reason.text) is str and reason.text
        if not has_text or type(reason.code) is not Code or reason.code not in _REJECTION_CODES:
            raise PluginError(plugin.name, "Filter", _describe_bad_reason(reason))
    rejections: tuple[Rejection, ...] = result
    return rejections


def check_scores(plugin: NamedPlugin, point: str, scores: Any, node_count: int) -> IntArray:
    """Return *scores* as int64 if they are one whole number for each node.

    Raises:
        PluginError: the type or length is wrong, or a score is not whole.
    """
    if not isinstance(scores, np.ndarray) or scores.shape != (node_count,):
        raise PluginError(
            plugin.name, point, f"returned {describe_value(scores)}, want an array of {node_count} scores, one a node"
        )
    if scores.dtype == np.int64:
        return scores
    if scores.dtype.kind == "f" and not np.isfinite(scores).all():
        position = int(np.flatnonzero(~np.isfinite(scores))[0])
        detail = f"the score of node number {position} is {scores[position]}, want a whole number"
        raise PluginError(plugin.name, point, detail)
    if scores.dtype.kind not in "iu" or (scores.dtype.kind == "u" and scores.max(initial=0) > np.iinfo(np.int64).max):
        raise PluginError(plugin.name, point, f"scores are {scores.dtype}, want int64: write scores.astype(np.int64)")
    return scores.astype(np.int64)


def _convert_to_tuple(plugin: NamedPlugin, result: Any) -> tuple[Any, ...]:
    """Return *result* as a tuple.

    Raises:
        PluginError: it is neither a list nor a tuple.
    """
    if isinstance(result, list) or (isinstance(result, tuple) and type(result) is not Rejection):
        return tuple(result)
    if isinstance(result, Rejection):
        detail = "returned one Rejection, want a tuple of them: write (Rejection(...),)"
    elif isinstance(result, Iterator):
        detail = f"returned a {type(result).__name__}, want a tuple: return the whole result, do not yield it"
    else:
        detail = f"returned {describe_value(result)}, want a tuple of Rejections, empty to reject no node"
    raise PluginError(plugin.name, "Filter", detail)


def _describe_bad_rejection(result: tuple[Any, ...], bad_item: Any) -> str:
    position = next(position for position, item in enumerate(result) if item is bad_item)
    return f"item {position} of the result is {describe_value(bad_item)}, want a Rejection"


def _describe_bad_reason(reason: Any) -> str:
    if type(reason) is not Reason:
        return f'the reason is {describe_value(reason)}, want Reason("text", Code.UNSCHEDULABLE)'
    if type(reason.text) is not str or not reason.text:
        return f"the text of a reason is {describe_value(reason.text)}, want some words"
    return f"the code of a reason is {describe_value(reason.code)}, want UNSCHEDULABLE, UNRESOLVABLE or ERROR"
