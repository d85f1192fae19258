"""A histogram whose observations are counted in blocks, because the event loop observes eleven values per pod."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from prometheus_client import Histogram
from prometheus_client.samples import Sample

_BLOCK_SIZE: Final = 256
"""The number of values that are counted at once."""


class BufferedHistogram(Histogram):
    """A histogram of prometheus_client that counts its values when there are 256 of them, or when it is read.

    prometheus_client takes two locks for each value. Not thread-safe: observe and expose in one thread.
    """

    def _metric_init(self) -> None:
        super()._metric_init()
        self._pending: list[float] = []

    def observe(self, amount: float, exemplar: Any = None) -> None:
        """Observe a value.

        Raises:
            ValueError: there is an exemplar.
        """
        if exemplar is not None:
            raise ValueError("exemplars are not supported")
        pending = self._pending
        pending.append(amount)
        if len(pending) >= _BLOCK_SIZE:
            self._count_pending()

    def _count_pending(self) -> None:
        values = np.array(self._pending, dtype=np.float64)
        self._pending.clear()
        self._sum.inc(float(values.sum()))
        buckets = np.searchsorted(self._upper_bounds, values)
        for index, count in enumerate(np.bincount(buckets).tolist()):
            if count:
                self._buckets[index].inc(count)

    def _child_samples(self) -> Iterable[Sample]:
        if self._pending:
            self._count_pending()
        return super()._child_samples()
