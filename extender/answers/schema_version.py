"""The version of the JSON answers. Every answer starts with it, and with the kind of the answer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

SCHEMA_VERSION: Final = "1.0"
"""MAJOR.MINOR. A minor version adds fields, kinds or reason codes. A major version may remove or change them."""

MAJOR_VERSION: Final = SCHEMA_VERSION.partition(".")[0]


class AnswerKind(StrEnum):
    """The kind of an answer. Its JSON Schema is in `extender/answers/schemas/<kind>.json`."""

    EXPLANATION = "Explanation"
    SIMULATION = "Simulation"
    WHAT_IF = "WhatIf"
    SWEEP_RESULT = "SweepResult"
    FITS = "Fits"
    FITS_BY_SHAPE = "FitsByShape"
    COMPARISON = "Comparison"
    REBALANCE = "Rebalance"
    EXPERIMENT_RUN = "ExperimentRun"
    EXPERIMENT_CURVE = "ExperimentCurve"


def make_answer(kind: AnswerKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return *values* behind the version of the schema and the kind."""
    return {"schemaVersion": SCHEMA_VERSION, "kind": kind.value, **values}


def is_readable(version: str) -> bool:
    """Return whether this program reads documents of a schema version: whether the major version is the same."""
    return version.partition(".")[0] == MAJOR_VERSION
