"""The JSON Schema of each kind of answer, made from its type. The wheel has them as files beside this module."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from extender.answers.experiment import ExperimentCurveAnswer, ExperimentRunAnswer
from extender.answers.explanation import ExplanationAnswer
from extender.answers.planning import FitsAnswer, FitsByShapeAnswer, SweepResultAnswer, WhatIfAnswer
from extender.answers.rebalance import RebalanceAnswer
from extender.answers.recording import RecordingDocument
from extender.answers.schema_version import SCHEMA_VERSION, AnswerKind
from extender.answers.simulation import ComparisonAnswer, SimulationAnswer

RECORDING: Final = "Recording"
"""The name of the schema of recordings, whose kind is `List`."""

ANSWER_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    AnswerKind.EXPLANATION: ExplanationAnswer,
    AnswerKind.SIMULATION: SimulationAnswer,
    AnswerKind.WHAT_IF: WhatIfAnswer,
    AnswerKind.SWEEP_RESULT: SweepResultAnswer,
    AnswerKind.FITS: FitsAnswer,
    AnswerKind.FITS_BY_SHAPE: FitsByShapeAnswer,
    AnswerKind.COMPARISON: ComparisonAnswer,
    AnswerKind.REBALANCE: RebalanceAnswer,
    AnswerKind.EXPERIMENT_RUN: ExperimentRunAnswer,
    AnswerKind.EXPERIMENT_CURVE: ExperimentCurveAnswer,
    RECORDING: RecordingDocument,
}
"""The type of each kind of answer."""

_REF_TEMPLATE: Final = "#/$defs/{name}"


def make_json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a kind of answer.

    Unknown fields are allowed: a later minor version may add fields.
    """
    (schema,), parts = msgspec.json.schema_components([ANSWER_TYPES[kind]], ref_template=_REF_TEMPLATE)
    name = schema["$ref"].rpartition("/")[2]
    answer = parts.pop(name)
    if "kind" in answer["properties"]:
        answer["properties"]["kind"] = {"const": "List" if kind == RECORDING else kind}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **answer,
        "title": f"{kind} {SCHEMA_VERSION}",
        "$defs": dict(sorted(parts.items())),
    }
