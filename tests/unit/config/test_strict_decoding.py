"""Strict decoding to option types of plugins."""

import datetime as dt
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import msgspec
import pytest

from extender.api.kinds.meta import Int32
from extender.config.durations import Duration
from extender.config.errors import FieldError
from extender.config.strict_decoding import decode_strict


class Mode(Enum):
    SOFT = "Soft"
    HARD = "Hard"


class Resource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    weight: Int32 = 1


class Strategy(msgspec.Struct, frozen=True, rename="camel"):
    type: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    resources: tuple[Resource, ...] = ()


class Args(msgspec.Struct, frozen=True, rename="camel"):
    scoring_strategy: Strategy | None = None
    timeout: Duration = 10.0
    mode: Mode = Mode.SOFT
    labels: Mapping[str, str] = {}
    share: float = 0.5
    either: int | str = 0
    data: bytes = b""
    waits: tuple[Duration, ...] = ()
    counts: list[Int32] = []
    dated: dt.date | None = None
    anything: object = None


class Even(msgspec.Struct, frozen=True):
    number: int = 0

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("has to be even")


COMPLETE = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "Args",
    "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2.0}]},
    "timeout": "1m30s",
    "mode": "Hard",
    "labels": {"a": "b", "c": None},
    "share": 1,
    "either": "x",
    "data": "YWI=",
    "anything": [1],
    "waits": ["1s", None],
    "counts": [None, 2],
    "dated": "2020-01-02",
}


def test_a_complete_object_is_decoded() -> None:
    value, errors = decode_strict(COMPLETE, Args, "args")
    assert errors == []
    assert value == Args(
        scoring_strategy=Strategy("MostAllocated", (Resource("cpu", 2),)),
        timeout=90.0,
        mode=Mode.HARD,
        labels={"a": "b", "c": ""},
        share=1.0,
        either="x",
        data=b"ab",
        anything=[1],
        waits=(1.0, 0.0),
        counts=[0, 2],
        dated=dt.date(2020, 1, 2),
    )


CASES = {
    "an unknown field has its path and a suggestion": (
        {"scoringStrategy": {"resources": [{"name": "cpu", "Weight": 1}]}},
        ("args.scoringStrategy.resources[0].Weight", 'unknown field "Weight"; did you mean "weight"?'),
    ),
    "kind is unknown below the top": (
        {"scoringStrategy": {"kind": "X"}},
        ("args.scoringStrategy.kind", 'unknown field "kind"'),
    ),
    "a literal lists its supported values": (
        {"scoringStrategy": {"type": "mostAllocated"}},
        (
            "args.scoringStrategy.type",
            'Unsupported value: "mostAllocated": supported values: "LeastAllocated", "MostAllocated"; '
            'did you mean "MostAllocated"?',
        ),
    ),
    "an enum lists its supported values": (
        {"mode": "x"},
        ("args.mode", 'Unsupported value: "x": supported values: "Soft", "Hard"'),
    ),
    "a literal is a string": ({"mode": 7}, ("args.mode", "expected a string, got the integer 7")),
    "a missing field without a default is required": (
        {"scoringStrategy": {"resources": [{"weight": 2}]}},
        ("args.scoringStrategy.resources[0].name", "Required value"),
    ),
    "a value of a mapping has its path": (
        {"labels": {"a": 1}},
        ("args.labels.a", "expected a string, got the integer 1"),
    ),
    "an infinite number is rejected": (
        {"share": float("inf")},
        ("args.share", "expected a number, got the number inf"),
    ),
    "a union takes one of its members": ({"either": []}, ("args.either", "Expected `int | str`, got `array`")),
    "a duration is a string": (
        {"timeout": 5},
        ("args.timeout", 'expected a duration such as "1m30s", got the integer 5'),
    ),
    "a duration is not null": (
        {"timeout": None},
        ("args.timeout", 'time: invalid duration "": write it like "1m30s" or "100ms"'),
    ),
    "an object is not text": ({"labels": "a"}, ("args.labels", 'expected an object, got the string "a"')),
    "base64 is a string": ({"data": 1}, ("args.data", "expected a string of base64, got the integer 1")),
    "any other type has its own validation": ({"dated": "x"}, ("args.dated", "Invalid RFC3339 encoded date")),
    "a value of an unexpected type is described by its type": (
        {"timeout": b"x"},
        ("args.timeout", 'expected a duration such as "1m30s", got a bytes'),
    ),
    "a list is not text": (
        {"scoringStrategy": {"resources": "cpu"}},
        ("args.scoringStrategy.resources", 'expected a list, got the string "cpu"'),
    ),
}


@pytest.mark.parametrize(("raw", "error"), CASES.values(), ids=CASES)
def test_an_error_has_its_full_path(raw: Any, error: str) -> None:
    assert decode_strict(raw, Args, "args") == (None, [FieldError(*error)])


def test_all_errors_are_found_together() -> None:
    raw = {"scoringStrategy": {"type": "x", "resources": [{"name": 1}, {"name": "cpu", "weight": "2"}]}, "shore": 2}
    value, errors = decode_strict(raw, Args, "args")
    assert value is None
    assert [error.path for error in errors] == [
        "args.shore",
        "args.scoringStrategy.type",
        "args.scoringStrategy.resources[0].name",
        "args.scoringStrategy.resources[1].weight",
    ]


def test_an_exception_of_post_init_is_an_error() -> None:
    assert decode_strict({"number": 3}, Even, "args") == (None, [FieldError("args", "has to be even")])
