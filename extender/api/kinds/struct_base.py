"""The base class and the scalar types of the Kubernetes kinds."""

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A 32-bit integer; a number out of range fails to decode, as in Go."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A 64-bit integer; a number out of range fails to decode, as in Go."""

RawQuantity = str | int | float
"""An unparsed resource quantity; see `quantity.parse`."""

ResourceList = dict[str, RawQuantity]
"""Unparsed quantities by resource name."""


class KubernetesStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of all kinds: frozen, with the JSON field names of Kubernetes. Absent fields have Go's zero value.

    Decoded objects have no reference cycles, so the garbage collector does not track them.
    """
