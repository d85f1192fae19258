"""Array types of the columns, and functions that make arrays."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]


def widen(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return *array* with its last axis at least *size* long; new entries are 0.

    Returns the same array if it is long enough.
    """
    old_size = array.shape[-1]
    if old_size >= size:
        return array
    wider = np.zeros((*array.shape[:-1], size), dtype=array.dtype)
    wider[..., :old_size] = array
    return wider


def make_mask(positions: Sequence[int] | IntArray, size: int) -> BoolArray:
    """Return a mask that is True at *positions*: bool, shape (size,)."""
    mask: BoolArray = np.zeros(size, dtype=np.bool_)
    mask[positions] = True
    return mask
