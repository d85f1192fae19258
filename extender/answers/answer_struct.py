"""The bases of all answer types, and the types that answers share."""

from typing import Annotated

import msgspec
from msgspec import Meta

PodKey = Annotated[str, Meta(description="namespace/name of a pod.")]
Reasons = Annotated[list[str], Meta(description="kube-scheduler's texts, without node names.")]
SchemaVersion = Annotated[str, Meta(pattern=r"^1\.\d+$", description="MAJOR.MINOR of the schema.")]
ReasonCodes = Annotated[list[str], Meta(description="A stable code for each reason, in the same order.")]


class AnswerPart(msgspec.Struct, rename="camel"):
    """A part of an answer. Fields without a default are in all documents of the major version."""


class Answer(AnswerPart):
    """A whole answer.

    Attributes:
        schema_version: MAJOR.MINOR of the schema.
        kind: the kind of the answer.
    """

    schema_version: SchemaVersion
    kind: str


class ResourceUse(AnswerPart):
    """Amounts of one resource: CPU in milli-CPU, memory and storage in bytes, others as numbers."""

    requested: int
    allocatable: int

    @property
    def fraction(self) -> float:
        """The requested amount divided by the allocatable amount; 0 if the allocatable amount is 0."""
        return self.requested / self.allocatable if self.allocatable else 0.0
