"""The plugin runner names the plugin that raises or returns an invalid result."""

import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from extender.framework.extension_points import DependsOn, PreFilterResult, PreScoreResult
from extender.framework.status import Code, Reason, Rejection, Status
from extender.testing import PluginFailedError, make_cluster, make_node, make_pod, run_plugin

NO = Reason("node(s) are wrong")


def make_plugin(**methods: Callable[..., Any]) -> type[Any]:
    """Make a vectorized plugin named Wrong with these methods, without `self`."""
    return type("Wrong", (), {"name": "Wrong", **{name: staticmethod(method) for name, method in methods.items()}})


def make_filter(answer: Any) -> type[Any]:
    return make_plugin(filter=lambda pod, nodes, state: answer(len(nodes)))


def make_score(answer: Any) -> type[Any]:
    return make_plugin(score=lambda pod, nodes, state: answer(len(nodes)))


def full_mask(size: int) -> Any:
    return np.ones(size, dtype=np.bool_)


def raise_error(error: BaseException) -> Callable[[int], Any]:
    def answer(_: int) -> Any:
        raise error

    return answer


class PanicException(BaseException):
    """A panic of Rust code that was called from Python."""


FILTERS: dict[str, tuple[Any, str]] = {
    "raises": (raise_error(RuntimeError("out of luck")), "RuntimeError: out of luck"),
    "raises without text": (raise_error(AssertionError()), "AssertionError"),
    "raises with text that needs its type": (raise_error(KeyError("gpu")), "KeyError: 'gpu'"),
    "panics": (raise_error(PanicException("unwrap on None")), "PanicException: unwrap on None"),
    "returns None": (lambda _: None, "returned None, want a tuple of Rejections, empty to reject no node"),
    "returns a mask": (
        full_mask,
        "returned an array of bool with shape (2,), want a tuple of Rejections, empty to reject no node",
    ),
    "returns a generator": (
        lambda size: (Rejection(full_mask(size), NO) for _ in range(1)),
        "returned a generator, want a tuple: return the whole result, do not yield it",
    ),
    "returns one rejection": (
        lambda size: Rejection(full_mask(size), NO),
        "returned one Rejection, want a tuple of them: write (Rejection(...),)",
    ),
    "returns texts": (lambda _: ("no",), "item 0 of the result is str 'no', want a Rejection"),
    "returns plain pairs": (
        lambda size: [Rejection(full_mask(size), NO), (1, 2)],
        "item 1 of the result is tuple (1, 2), want a Rejection",
    ),
    "has a short mask": (
        lambda _: (Rejection(full_mask(1), NO),),
        "a mask must be a bool array with one entry a node (2), got an array of bool with shape (1,)",
    ),
    "has a mask of two dimensions": (
        lambda size: (Rejection(np.ones((size, 1), dtype=np.bool_), NO),),
        "a mask must be a bool array with one entry a node (2), got an array of bool with shape (2, 1)",
    ),
    "has a mask of numbers": (
        lambda size: (Rejection(np.ones(size), NO),),  # type: ignore[arg-type]
        "a mask must be a bool array with one entry a node (2), got an array of float64 with shape (2,)",
    ),
    "has a list for a mask": (
        lambda _: (Rejection([True, False], NO),),  # type: ignore[arg-type]
        "a mask must be a bool array with one entry a node (2), got list [True, False]",
    ),
    "has a text for a reason": (
        lambda size: (Rejection(full_mask(size), "no"),),  # type: ignore[arg-type]
        "the reason is str 'no', want Reason(\"text\", Code.UNSCHEDULABLE)",
    ),
    "has a reason that is no text": (
        lambda size: (Rejection(full_mask(size), Reason(7)),),  # type: ignore[arg-type]
        "the text of a reason is int 7, want some words",
    ),
    "has an empty reason": (
        lambda size: (Rejection(full_mask(size), Reason("")),),
        "the text of a reason is str '', want some words",
    ),
    "has a code that does not reject": (
        lambda size: (Rejection(full_mask(size), Reason("no", Code.SKIP)),),
        "the code of a reason is Code <Code.SKIP: 5>, want UNSCHEDULABLE, UNRESOLVABLE or ERROR",
    ),
}

SCORES: dict[str, tuple[Any, str]] = {
    "raises": (raise_error(ZeroDivisionError("division by zero")), "ZeroDivisionError: division by zero"),
    "is None": (lambda _: None, "returned None, want an array of 2 scores, one a node"),
    "is a list": (lambda _: [1, 2], "returned list [1, 2], want an array of 2 scores, one a node"),
    "is a generator": (lambda _: iter((1, 2)), "want an array of 2 scores, one a node"),
    "is too short": (
        lambda _: np.zeros(1, dtype=np.int64),
        "returned an array of int64 with shape (1,), want an array of 2 scores, one a node",
    ),
    "is NaN": (lambda _: np.array([1.0, np.nan]), "the score of node number 1 is nan, want a whole number"),
    "is infinite": (lambda _: np.array([-np.inf, 1]), "the score of node number 0 is -inf, want a whole number"),
    "is a fraction": (lambda _: np.array([0.5, 1]), "scores are float64, want int64: write scores.astype(np.int64)"),
    "is true or false": (full_mask, "scores are bool, want int64: write scores.astype(np.int64)"),
    "is text": (lambda _: np.array(["1", "2"]), "scores are <U1, want int64: write scores.astype(np.int64)"),
}


def run_failing(plugin: object) -> str:
    """Run *plugin* on two nodes, and return the error without the place in this file."""
    cluster = make_cluster(make_node("one"), make_node("two"), make_pod("web"))
    with pytest.raises(PluginFailedError) as error:
        run_plugin(plugin, cluster, "web")
    return re.sub(r" \(tests/unit/framework/test_plugin_runner\.py:\d+\)", "", str(error.value))


@pytest.mark.parametrize(("answer", "want"), FILTERS.values(), ids=[f"a filter that {case}" for case in FILTERS])
def test_a_filter_with_an_invalid_result_is_named(answer: Any, want: str) -> None:
    assert run_failing(make_filter(answer)) == f'running "Wrong" filter plugin: {want}'


def test_ctrl_c_in_a_plugin_is_no_failure_of_the_plugin() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_failing(make_filter(raise_error(KeyboardInterrupt())))


@pytest.mark.parametrize(("answer", "want"), SCORES.values(), ids=[f"a score that {case}" for case in SCORES])
def test_a_score_with_an_invalid_result_is_named(answer: Any, want: str) -> None:
    message = run_failing(make_score(answer))
    assert message.startswith('running Score plugins: plugin "Wrong" failed with: ')
    assert message.endswith(want)


@pytest.mark.parametrize(("score", "text"), [(-1, "-1"), (101, "101")], ids=["below", "above"])
def test_a_score_outside_0_to_100_that_is_not_normalized_is_named(score: int, text: str) -> None:
    plugin = make_score(lambda size: np.full(size, score, dtype=np.int64))
    assert run_failing(plugin) == (
        f'applying score defaultWeights on Score plugins: plugin "Wrong" returns an invalid score {text}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_integers_of_another_width_are_converted() -> None:
    cluster = make_cluster(make_node("one"), make_node("two"), make_pod("web"))
    decision = run_plugin(make_score(lambda size: np.arange(size, dtype=np.uint8)), cluster, "web")
    assert decision.scores == {"one": 0, "two": 1}


OTHERS: dict[str, tuple[dict[str, Callable[..., Any]], str]] = {
    "a PreFilter that returns None": (
        {"pre_filter": lambda pod, snapshot: None},
        'running PreFilter plugin "Wrong": returned None, want PreFilterResult',
    ),
    "a PreFilter with a list of nodes": (
        {"pre_filter": lambda pod, snapshot: PreFilterResult(node_names=["one"])},  # type: ignore[arg-type]
        'running PreFilter plugin "Wrong": '
        "PreFilterResult.node_names is list ['one'], want a frozenset of names or None",
    ),
    "a PreFilter with a text for a status": (
        {"pre_filter": lambda pod, snapshot: PreFilterResult(status="no")},  # type: ignore[arg-type]
        "running PreFilter plugin \"Wrong\": PreFilterResult.status is str 'no', want a Status or None",
    ),
    "a PreScore with a text for reasons": (
        {
            "pre_score": lambda pod, nodes: PreScoreResult(status=Status(Code.ERROR, "no")),  # type: ignore[arg-type]
            "score": lambda pod, nodes, state: np.zeros(
                len(nodes), dtype=np.int64
            ),  # PreScore runs only for plugins that score
        },
        "running PreScore plugin \"Wrong\": Status.reasons is str 'no', want a tuple of texts",
    ),
    "a PreEnqueue that returns False": (
        {"pre_enqueue": lambda pod, snapshot: False},
        'running PreEnqueue plugin "Wrong": returned bool False, want Status or None',
    ),
    "a normalize_score with a wrong length": (
        {
            "score": lambda pod, nodes, state: np.zeros(len(nodes), dtype=np.int64),
            "normalize_score": lambda pod, scores, nodes, state: scores[:1],
        },
        'running Normalize on Score plugins: plugin "Wrong" failed with: '
        "returned an array of int64 with shape (1,), "
        "want an array of 2 scores, one a node",
    ),
}


@pytest.mark.parametrize(("methods", "want"), OTHERS.values(), ids=OTHERS)
def test_an_invalid_result_at_another_extension_point_is_named(
    methods: dict[str, Callable[..., Any]], want: str
) -> None:
    assert run_failing(make_plugin(**methods)) == want


class UnhashableKey:
    """A filter with a cache key that cannot be hashed."""

    name: ClassVar[str] = "UnhashableKey"
    filter_depends_on: ClassVar[DependsOn] = DependsOn.NODE

    def filter_cache_key(self, pod: Any) -> Any:
        return []

    def filter(self, pod: Any, nodes: Any, state: Any) -> Any:
        return ()


def test_a_key_that_cannot_be_hashed_is_named() -> None:
    message = run_failing(UnhashableKey)
    assert message.startswith('running "UnhashableKey" filter plugin: filter_cache_key: TypeError: ')
