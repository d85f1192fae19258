"""The lines of `extender experiment -o jsonl` and `--curves`. Their fields are in snake case."""

from typing import Annotated

import msgspec
from msgspec import Meta

from extender.answers.answer_struct import Answer, SchemaVersion

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
