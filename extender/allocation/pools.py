"""Pools of devices as a node sees them: which slices count, whether the pool is complete and right, in which order.

Only the newest generation of a pool counts, and only when all its slices are there. Pools go by driver and name, those
with binding conditions last; slices go by name, so that drivers can say what is taken first. Source: B124.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from extender.allocation.faults import AllocationError
from extender.allocation.slices import Amounts, Offer, OfferedDevice, PoolId
from extender.objects.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as one node sees it.

    Attributes:
        id: driver and name.
        incomplete: slices are missing.
        invalid: what is wrong with its slices; empty if nothing.
        devices: of the slices that concern the node, in the order in which they are tried.
        elsewhere: devices of the other slices; they too take from the counters.
        counter_sets: shared counters by the name of the set.
    """

    id: PoolId
    incomplete: bool = False
    invalid: str = ""
    devices: tuple[OfferedDevice, ...] = ()
    elsewhere: tuple[OfferedDevice, ...] = ()
    counter_sets: Mapping[str, Amounts] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For messages."""
        return "/".join(self.id)

    @property
    def usable(self) -> bool:
        """Whether devices may be taken from it."""
        return not self.incomplete and not self.invalid

    @property
    def waits(self) -> bool:
        """Whether some device has to be bound by conditions, so that the pool is tried last."""
        return any(device.device.binding_conditions for device in self.devices)


class Stock:
    """All slices of a cluster at one moment.

    Attributes:
        offers: by the name of the slice, in the order of arrival.
    """

    __slots__ = ("_built", "_by_pool", "_on_node", "_partitions", "_seen", "_shared", "offers")

    def __init__(self, offers: Mapping[str, Offer], *, partitions: bool) -> None:
        """Sorts the slices by node and by pool.

        Args:
            offers: the slices.
            partitions: whether partitionable devices are known.
        """
        self.offers = offers
        self._partitions = partitions
        self._on_node: dict[str, list[Offer]] = {}
        self._shared: list[Offer] = []
        self._by_pool: dict[PoolId, list[Offer]] = {}
        for offer in offers.values():
            self._by_pool.setdefault(offer.id, []).append(offer)
            named = offer.object.spec.node_name
            if named and not offer.counter_sets:
                self._on_node.setdefault(named, []).append(offer)
            else:
                self._shared.append(offer)
        self._built: dict[tuple[PoolId, tuple[str, ...], bool], Pool] = {}
        self._seen: dict[str, tuple[Node, tuple[Pool, ...]]] = {}

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The pools with devices for *node*, in the order in which they are tried.

        Raises:
            AllocationError: a node selector of a slice is wrong.
        """
        known = self._seen.get(node.metadata.name)
        if known is not None and known[0] is node:
            return known[1]
        found = self._gathered(node)
        self._seen[node.metadata.name] = (node, found)
        return found

    def _gathered(self, node: Node) -> tuple[Pool, ...]:
        relevant: dict[PoolId, list[Offer]] = {}
        for offer in (*self._on_node.get(node.metadata.name, ()), *self._shared):
            if not self._partitions and offer.of_partitions:
                continue
            if offer.concerns(node):
                _newest(relevant.setdefault(offer.id, []), offer)
        plain: list[Pool] = []
        waiting: list[Pool] = []
        for key, offers in relevant.items():
            pool = self._pool(key, offers)
            if pool is not None:
                (waiting if pool.waits else plain).append(pool)
        plain.sort(key=lambda pool: pool.id)
        waiting.sort(key=lambda pool: pool.id)
        return (*plain, *waiting)

    def _pool(self, key: PoolId, offers: Sequence[Offer]) -> Pool | None:
        """The pool made of *offers*, or None if a newer generation, which has nothing for the node, replaces it."""
        generation, wanted = offers[0].generation, offers[0].count
        everything: Sequence[Offer] = offers
        if len(offers) != wanted:
            known = self._by_pool[key]
            if any(offer.generation > generation for offer in known):
                return None
            everything = [offer for offer in known if offer.generation == generation]
            if len(everything) != wanted:
                return Pool(key, incomplete=True)
        ordered = sorted(offers, key=lambda offer: offer.name)
        names = (key, tuple(offer.name for offer in ordered), len(everything) != len(offers))
        built = self._built.get(names)
        if built is None:
            rest = [offer for offer in everything if offer not in offers]
            built = self._built[names] = _built(key, ordered, rest, partitions=self._partitions)
        return built


def _newest(known: list[Offer], offer: Offer) -> None:
    """Add *offer* to those of its pool; a newer generation drives out an older one."""
    if known and offer.generation < known[0].generation:
        return
    if known and offer.generation > known[0].generation:
        known.clear()
    known.append(offer)


def _built(key: PoolId, offers: Sequence[Offer], rest: Sequence[Offer], *, partitions: bool) -> Pool:
    of_devices = [offer for offer in offers if not (partitions and offer.counter_sets)]
    devices = tuple(device for offer in of_devices for device in offer.devices)
    fault = _repeated(device.device.name for device in devices)
    if fault is not None:
        return Pool(key, invalid=f"duplicate device name {fault}")
    if not partitions:
        return Pool(key, devices=devices)
    sets: dict[str, Amounts] = {}
    for offer in offers:
        for name, counters in offer.counter_sets:
            if name in sets:
                return Pool(key, invalid=f"duplicate counter set name {name}")
            sets[name] = counters
    for group in (offers, rest):
        wrong = _unknown_counter(sets, group)
        if wrong:
            return Pool(key, invalid=wrong)
    elsewhere = tuple(device for offer in rest for device in offer.devices)
    return Pool(key, devices=devices, elsewhere=elsewhere, counter_sets=sets)


def _repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _unknown_counter(sets: Mapping[str, Amounts], offers: Iterable[Offer]) -> str:
    for offer in offers:
        for device in offer.devices:
            for taken in device.consumption:
                counters = sets.get(taken.counter_set)
                if counters is None:
                    return f"counter set {taken.counter_set} not found"
                for name in taken.counters:
                    if name not in counters:
                        return f"counter {name} not found in counter set {taken.counter_set}"
    return ""


def checked_pools(stock: Stock, node: Node) -> tuple[Pool, ...]:
    """`Stock.pools`, its faults in upstream's words.

    Raises:
        AllocationError: a node selector of a slice is wrong.
    """
    try:
        return stock.pools(node)
    except AllocationError as fault:
        raise AllocationError(f"gather pool information: {fault}") from fault
