"""Every way a plugin can be wrong, and the one clear line that names it: when it is loaded, built, and asked."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import yaml

from extender.catalogue import catalogue
from extender.config.faults import ConfigError
from extender.framework.points import PreFiltered, PreScored, Reads
from extender.framework.rowwise import filter_plugin, score_plugin
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, Status
from extender.testing import PluginFailedError, a_cluster, a_node, a_pod, try_plugin

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "wrong_plugins.yaml").read_text())["cases"]
NUMBERS = count(1)
NO = Reason("node(s) are wrong")


def installed(folder: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the entry point `entry` installed in *folder*; returns its module's name."""
    module = f"wrong_module_{next(NUMBERS)}"
    (folder / f"{module}.py").write_text(source)
    info = folder / "wrong_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[extender.plugins]\nentry = {module}:plugin\n")
    monkeypatch.syspath_prepend(folder)
    return module


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_wrong_plugin_is_refused_when_it_is_loaded(
    case: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = installed(tmp_path, case["source"], monkeypatch)
    with pytest.raises(ConfigError) as error:
        catalogue()
    want = case["want"].replace("{module}", module)
    assert str(error.value) == f'plugin "entry" of wrong-package ({module}:plugin): {want}'


def test_a_right_plugin_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        'from extender.framework.rowwise import filter_plugin\n@filter_plugin("Right")\ndef plugin(p, n): return None\n'
    )
    installed(tmp_path, source, monkeypatch)
    assert catalogue()["Right"].name == "Right"


def plugin(**methods: Callable[..., Any]) -> type[Any]:
    """A vectorised plugin named Wrong with these methods, `self` left out."""
    return type("Wrong", (), {"name": "Wrong", **{name: staticmethod(method) for name, method in methods.items()}})


def filtering(answer: Any) -> type[Any]:
    return plugin(filter=lambda pod, nodes, notes: answer(len(nodes)))


def scoring(answer: Any) -> type[Any]:
    return plugin(score=lambda pod, nodes, notes: answer(len(nodes)))


def all_of(size: int) -> Any:
    return np.ones(size, dtype=np.bool_)


def raising(fault: BaseException) -> Callable[[int], Any]:
    def answer(_: int) -> Any:
        raise fault

    return answer


FILTER = 'running "Wrong" filter plugin: '
FILTERS: dict[str, tuple[Any, str]] = {
    "raises": (raising(RuntimeError("out of luck")), "RuntimeError: out of luck"),
    "raises without a word": (raising(AssertionError()), "AssertionError"),
    "raises with a word that says little": (raising(KeyError("gpu")), "KeyError: 'gpu'"),
    "says None": (lambda _: None, "answered with None, want a tuple of Rejections, empty to refuse no node"),
    "says a mask": (
        all_of,
        "answered with an array of bool with shape (2,), want a tuple of Rejections, empty to refuse no node",
    ),
    "says a generator": (
        lambda size: (Rejection(all_of(size), NO) for _ in range(1)),
        "answered with a generator, want a tuple: return the whole answer, do not yield it",
    ),
    "says one rejection": (
        lambda size: Rejection(all_of(size), NO),
        "answered with one Rejection, want a tuple of them: write (Rejection(...),)",
    ),
    "says texts": (lambda _: ("no",), "item 0 of the answer is str 'no', want a Rejection"),
    "says plain pairs": (
        lambda size: [Rejection(all_of(size), NO), (1, 2)],
        "item 1 of the answer is tuple (1, 2), want a Rejection",
    ),
    "has a short mask": (
        lambda _: (Rejection(all_of(1), NO),),
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
        lambda size: (Rejection(all_of(size), "no"),),  # type: ignore[arg-type]
        "the reason is str 'no', want Reason(\"text\", Code.UNSCHEDULABLE)",
    ),
    "has a reason that is no text": (
        lambda size: (Rejection(all_of(size), Reason(7)),),  # type: ignore[arg-type]
        "the text of a reason is int 7, want some words",
    ),
    "has an empty reason": (
        lambda size: (Rejection(all_of(size), Reason("")),),
        "the text of a reason is str '', want some words",
    ),
    "has a code that does not refuse": (
        lambda size: (Rejection(all_of(size), Reason("no", Code.SKIP)),),
        "the code of a reason is Code <Code.SKIP: 5>, want UNSCHEDULABLE, UNRESOLVABLE or ERROR",
    ),
}

SCORES: dict[str, tuple[Any, str]] = {
    "raises": (raising(ZeroDivisionError("division by zero")), "ZeroDivisionError: division by zero"),
    "is None": (lambda _: None, "answered with None, want an array of 2 scores, one a node"),
    "is a list": (lambda _: [1, 2], "answered with list [1, 2], want an array of 2 scores, one a node"),
    "is a generator": (lambda _: iter((1, 2)), "want an array of 2 scores, one a node"),
    "is too short": (
        lambda _: np.zeros(1, dtype=np.int64),
        "answered with an array of int64 with shape (1,), want an array of 2 scores, one a node",
    ),
    "is NaN": (lambda _: np.array([1.0, np.nan]), "the score of node number 1 is nan, want a whole number"),
    "is infinite": (lambda _: np.array([-np.inf, 1]), "the score of node number 0 is -inf, want a whole number"),
    "is a fraction": (lambda _: np.array([0.5, 1]), "scores are float64, want int64: write scores.astype(np.int64)"),
    "is true or false": (all_of, "scores are bool, want int64: write scores.astype(np.int64)"),
    "is text": (lambda _: np.array(["1", "2"]), "scores are <U1, want int64: write scores.astype(np.int64)"),
}


def failure(wrong: object) -> str:
    """What is said when *wrong* is asked about two nodes and a pod."""
    cluster = a_cluster(a_node("one"), a_node("two"), a_pod("web"))
    with pytest.raises(PluginFailedError) as error:
        try_plugin(wrong, cluster, "web")
    return str(error.value)


@pytest.mark.parametrize(("answer", "want"), FILTERS.values(), ids=[f"a filter that {case}" for case in FILTERS])
def test_a_filter_with_a_wrong_answer_is_named(answer: Any, want: str) -> None:
    assert failure(filtering(answer)) == f'running "Wrong" filter plugin: {want}'


@pytest.mark.parametrize(("answer", "want"), SCORES.values(), ids=[f"a score that {case}" for case in SCORES])
def test_a_score_with_a_wrong_answer_is_named(answer: Any, want: str) -> None:
    said = failure(scoring(answer))
    assert said.startswith('running Score plugins: plugin "Wrong" failed with: ')
    assert said.endswith(want)


@pytest.mark.parametrize(("score", "shown"), [(-1, "-1"), (101, "101")], ids=["below", "above"])
def test_a_score_outside_0_to_100_that_is_not_normalized_is_named(score: int, shown: str) -> None:
    wrong = scoring(lambda size: np.full(size, score, dtype=np.int64))
    assert failure(wrong) == (
        f'applying score defaultWeights on Score plugins: plugin "Wrong" returns an invalid score {shown}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_whole_numbers_of_another_width_are_taken() -> None:
    cluster = a_cluster(a_node("one"), a_node("two"), a_pod("web"))
    answer = try_plugin(scoring(lambda size: np.arange(size, dtype=np.uint8)), cluster, "web")
    assert answer.scores == {"one": 0, "two": 1}


OTHERS: dict[str, tuple[dict[str, Callable[..., Any]], str]] = {
    "a PreFilter that says None": (
        {"pre_filter": lambda pod, cluster: None},
        'running PreFilter plugin "Wrong": answered with None, want PreFiltered',
    ),
    "a PreFilter with a list of nodes": (
        {"pre_filter": lambda pod, cluster: PreFiltered(nodes=["one"])},  # type: ignore[arg-type]
        "running PreFilter plugin \"Wrong\": nodes are list ['one'], want a frozenset of names or None",
    ),
    "a PreFilter with a text for a status": (
        {"pre_filter": lambda pod, cluster: PreFiltered(status="no")},  # type: ignore[arg-type]
        "running PreFilter plugin \"Wrong\": the status is str 'no', want a Status or None",
    ),
    "a PreScore with a text for reasons": (
        {
            "pre_score": lambda pod, nodes: PreScored(status=Status(Code.ERROR, "no")),  # type: ignore[arg-type]
            "score": lambda pod, nodes, notes: np.zeros(len(nodes), dtype=np.int64),  # without it nobody asks
        },
        "running PreScore plugin \"Wrong\": the reasons are str 'no', want a tuple of texts",
    ),
    "a PreEnqueue that says False": (
        {"pre_enqueue": lambda pod, cluster: False},
        'running PreEnqueue plugin "Wrong": the status is bool False, want a Status or None',
    ),
    "a normalize with a wrong length": (
        {
            "score": lambda pod, nodes, notes: np.zeros(len(nodes), dtype=np.int64),
            "normalize": lambda pod, raw, nodes, notes: raw[:1],
        },
        'running Normalize on Score plugins: plugin "Wrong" failed with: '
        "answered with an array of int64 with shape (1,), "
        "want an array of 2 scores, one a node",
    ),
}


@pytest.mark.parametrize(("methods", "want"), OTHERS.values(), ids=OTHERS)
def test_a_wrong_answer_at_another_point_is_named(methods: dict[str, Callable[..., Any]], want: str) -> None:
    assert failure(plugin(**methods)) == want


class BadKey:
    """Keeps answers under something that cannot be a key."""

    name: ClassVar[str] = "BadKey"
    filter_reads: ClassVar[Reads] = Reads.NODE

    def filter_key(self, pod: Any) -> Any:
        return []

    def filter(self, pod: Any, nodes: Any, notes: Any) -> Any:
        return ()


def test_a_key_that_cannot_be_hashed_is_named() -> None:
    said = failure(BadKey)
    assert said.startswith('running "BadKey" filter plugin: filter_key: TypeError: ')


class Raises:
    """Cannot be built."""

    name: ClassVar[str] = "Raises"

    def __init__(self, setup: Setup[None]) -> None:
        raise FileNotFoundError(2, "No such file or directory", "models.txt")

    def filter(self, pod: Any, nodes: Any, notes: Any) -> Any:
        return ()


def test_a_constructor_that_raises_is_named() -> None:
    with pytest.raises(ConfigError) as error:
        try_plugin(Raises, a_cluster(a_node("one"), a_pod("web")), "web")
    assert str(error.value) == (
        'profiles[0]: initializing plugin "Raises": '
        "FileNotFoundError: [Errno 2] No such file or directory: 'models.txt'"
    )


ROWS: dict[str, tuple[Any, str]] = {
    "a filter that raises": (
        filter_plugin("Wrong")(lambda pod, node: node.labels["zone"]),
        "running \"Wrong\" filter plugin: node one: KeyError: 'zone'",
    ),
    "a filter that says False": (
        filter_plugin("Wrong")(lambda pod, node: False),  # type: ignore[type-var]
        'running "Wrong" filter plugin: node one: answered with bool False, '
        "want None to take the pod or a text that says why not",
    ),
    "a filter that says nothing in words": (
        filter_plugin("Wrong")(lambda pod, node: ""),
        "running \"Wrong\" filter plugin: node one: answered with str '', "
        "want None to take the pod or a text that says why not",
    ),
    "a score that raises": (
        score_plugin("Wrong")(lambda pod, node: 1 // node.allocatable("example.com/gpu")),
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: ZeroDivisionError: integer division or modulo by zero",
    ),
    "a score that is NaN": (
        score_plugin("Wrong")(lambda pod, node: float("nan")),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: node one: the score is nan, which is no number',
    ),
    "a score that is a fraction": (
        score_plugin("Wrong")(lambda pod, node: 0.5),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: the score is 0.5, want a whole number: use int() or round()",
    ),
    "a score that is None": (
        score_plugin("Wrong")(lambda pod, node: None),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: node one: the score is None, want a whole number',
    ),
    "a score past 64 bits": (
        score_plugin("Wrong")(lambda pod, node: 2**63),
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: the score 9223372036854775808 does not fit into 64 bits",
    ),
    "a score below 0 that is normalized": (
        score_plugin("Wrong", normalize=True)(lambda pod, node: -1),
        'running Normalize on Score plugins: plugin "Wrong" failed with: '
        "node one: the score -1 is below 0, which cannot be normalized; "
        "score from 0 up",
    ),
}


@pytest.mark.parametrize(("wrong", "want"), ROWS.values(), ids=ROWS)
def test_a_row_plugin_that_fails_is_named_with_the_node(wrong: object, want: str) -> None:
    assert failure(wrong) == want
    # A plugin that fails for one pod is asked again for the next: nothing of it is kept.
    assert failure(wrong) == want


def test_a_reason_that_differs_from_node_to_node_is_refused() -> None:
    named = filter_plugin("Wrong")(lambda pod, node: f"{node.name} is wrong")
    many = a_cluster(*(a_node(f"n{number}") for number in range(101)), a_pod("web"))
    with pytest.raises(PluginFailedError, match="more than 100 different reasons, such as str 'n100 is wrong'"):
        try_plugin(named, many, "web")
