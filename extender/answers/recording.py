"""The document of `extender record`: a List with the objects of a cluster, and fields about the recording."""

from typing import Annotated, Any

from msgspec import Meta

from extender.answers.answer_struct import AnswerPart, SchemaVersion


class RecordingDocument(AnswerPart):
    """A recorded cluster. Documents from before version 1.0 have no schema version."""

    kind: str
    api_version: str
    recorded_kinds: Annotated[list[str], Meta(description="The kinds that were listed, even without objects.")]
    unreadable_kinds: Annotated[dict[str, str], Meta(description="Kinds that could not be listed, with the reason.")]
    items: Annotated[list[dict[str, Any]], Meta(description="Objects as the API server returns them.")]
    schema_version: SchemaVersion = ""
    kubernetes_version: Annotated[str, Meta(description="The version of the API server; absent if unknown.")] = ""
