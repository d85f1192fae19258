"""Shared counters of partitionable devices: what is left, and what a search has taken so far.

As upstream, counters are kept by the name of the pool alone. Source: B122.
"""

from extender.allocation.allocated import Allocated
from extender.allocation.pools import Pool
from extender.allocation.slices import Amounts, OfferedDevice

CounterSets = dict[str, Amounts]
"""Counters in nano units, by the name of the set and of the counter."""


def left_in(pool: Pool, allocated: Allocated) -> CounterSets:
    """What allocated devices leave of the counters of *pool*; may be negative."""
    left = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    for device in (*pool.devices, *pool.elsewhere):
        if not device.consumption or not allocated.is_used(device.id):
            continue
        for taken in device.consumption:
            counters = left.get(taken.counter_set, {})
            for name, amount in taken.counters.items():
                if name in counters:
                    counters[name] -= amount
    return left


class Counters:
    """The counters of one search.

    What is left of a pool at its start is worked out with its first device.
    """

    __slots__ = ("_allocated", "_left", "_taken")

    def __init__(self, allocated: Allocated) -> None:
        self._allocated = allocated
        self._left: dict[str, CounterSets] = {}
        self._taken: dict[str, CounterSets] = {}

    def take(self, device: OfferedDevice, pool: Pool) -> bool:
        """Take what *device* needs, if no counter of the pool is exceeded then."""
        name = pool.id[1]
        left = self._left.get(name)
        if left is None:
            left = self._left[name] = left_in(pool, self._allocated)
        taken = self._taken.setdefault(name, {})
        self._add(device, taken, 1)
        for set_name, counters in left.items():
            used = taken.get(set_name, {})
            if any(amount < used.get(counter, 0) for counter, amount in counters.items()):
                self._add(device, taken, -1)
                return False
        return True

    def give_back(self, device: OfferedDevice, pool: Pool) -> None:
        """Give back what *device* took."""
        self._add(device, self._taken.setdefault(pool.id[1], {}), -1)

    @staticmethod
    def _add(device: OfferedDevice, taken: CounterSets, sign: int) -> None:
        for each in device.consumption:
            counters = taken.setdefault(each.counter_set, {})
            for name, amount in each.counters.items():
                counters[name] = counters.get(name, 0) + sign * amount
