"""The JSON Schema of each kind of answer, made from its type. The wheel has them as files beside this module.

The types that no code fills are here: the recording, and the lines of `extender experiment`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from extender.answers.answer_struct import Answer, AnswerPart, SchemaVersion
from extender.answers.explanation import ExplanationAnswer
from extender.answers.planning import FitsAnswer, FitsByShapeAnswer, SweepResultAnswer, WhatIfAnswer
from extender.answers.rebalance import RebalanceAnswer
from extender.answers.schema_version import SCHEMA_VERSION, AnswerKind
from extender.answers.simulation import ComparisonAnswer, SimulationAnswer

_BY_PERCENT = Meta(description="By the arrived per cent of the demand.")


class ExperimentRunAnswer(Answer, rename=None):
    """The result of one policy with one seed."""

    schema_version: SchemaVersion = msgspec.field(name="schemaVersion")
    policy: str
    seed: int
    allocated_percent: Annotated[dict[str, float], _BY_PERCENT]
    seconds: float


class ExperimentCurveAnswer(Answer, rename=None):
    """The curves of one policy with one seed; one entry for each whole per cent of arrived demand."""

    schema_version: SchemaVersion = msgspec.field(name="schemaVersion")
    policy: str
    seed: int
    arrived_percent: list[int]
    allocated_percent: list[float]
    waiting_pods: list[int]
    fragmented_percent: Annotated[dict[str, dict[str, float]], _BY_PERCENT]


class RecordingDocument(AnswerPart):
    """A recorded cluster. Documents from before version 1.0 have no schema version."""

    kind: str
    api_version: str
    recorded_kinds: Annotated[list[str], Meta(description="The kinds that were listed, even without objects.")]
    unreadable_kinds: Annotated[dict[str, str], Meta(description="Kinds that could not be listed, with the reason.")]
    items: Annotated[list[dict[str, Any]], Meta(description="Objects as the API server returns them.")]
    schema_version: SchemaVersion = ""
    kubernetes_version: Annotated[str, Meta(description="The version of the API server; absent if unknown.")] = ""


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
