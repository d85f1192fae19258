"""The settings every decoded Kubernetes object shares."""

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An int of 32 bits; a greater number is refused on decoding, as by Go."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An int of 64 bits; a greater number is refused on decoding, as by Go."""

RawQuantity = str | int | float
"""A resource quantity as it stands in JSON or YAML; `quantity.parse` reads it."""

ResourceList = dict[str, RawQuantity]
"""Resource names and raw quantities."""


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A frozen object with the JSON names of Kubernetes; unknown fields are ignored, absent ones are Go's zero value.

    Decoded objects are trees of frozen structs, so the cycle collector need not visit them.
    """
