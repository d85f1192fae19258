"""The array types of the columns, and how they grow."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]


def widened(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """*array* with its last axis at least *size* long, new places holding *fill*.

    The same array if it was long enough.
    """
    have = array.shape[-1]
    if have >= size:
        return array
    grown = np.full((*array.shape[:-1], size), fill, dtype=array.dtype)
    grown[..., :have] = array
    return grown
