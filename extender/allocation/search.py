"""The search for devices: claim by claim, request by request, device by device, the first solution counts.

A search is exhaustive, in upstream's order and with upstream's shortcuts, since the devices chosen decide what the
next pod finds, and the alternatives chosen decide the score. What a device that was refused late leaves behind in
counters and conditions is that of kube-scheduler up to 1.36.2 too (1.36.3 takes it back). Source: B113, B124.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from extender.allocation.allocated import Allocated
from extender.allocation.capacity import Amount, has_room, taken_by
from extender.allocation.constraints import Constraint
from extender.allocation.counters import Counters
from extender.allocation.faults import AllocationError, AllocationTimeoutError
from extender.allocation.features import Features
from extender.allocation.pools import Pool
from extender.allocation.requests import ALL, Request, kept_off
from extender.allocation.slices import DeviceId, OfferedDevice
from extender.cel.environment import CompileError, EvaluationError
from extender.objects.devices import DeviceSelector, ResourceClaim
from extender.objects.node import Node

MOST_DEVICES: Final = 32
"""The most devices a claim can be given."""

_NOTHING: Final[dict[str, int]] = {}


class Chosen(NamedTuple):
    """A device chosen for a request.

    Attributes:
        device: which.
        request: for which request or alternative.
        shares: what it takes of the device's capacities; None unless the device can be shared.
    """

    device: OfferedDevice
    request: Request
    shares: dict[str, Amount] | None


class Candidate(NamedTuple):
    """A device in its pool."""

    device: OfferedDevice
    pool: Pool


@dataclass(slots=True)
class Wanted:
    """A request, exact or alternative, with how many devices it wants.

    Attributes:
        request: which.
        count: of devices.
        everything: the devices to take if it wants all.
        fits: else, by pool and position, whether a device will do; None: not looked at yet.
    """

    request: Request
    count: int
    everything: tuple[Candidate, ...] = ()
    fits: dict[int, list[bool | None]] = field(default_factory=dict)


@dataclass(slots=True)
class Task:
    """A claim to allocate: its requests, each with its alternatives, its conditions, and what was chosen."""

    claim: ResourceClaim
    requests: list[tuple[Wanted, ...]]
    constraints: list[Constraint]
    chosen: list[Chosen] = field(default_factory=list)


class _Outcome(Enum):
    FOUND = auto()
    NONE = auto()
    TOO_MANY = auto()
    """The claim would get more devices than it can have, whatever is tried here."""


class Place(NamedTuple):
    """A device that is looked for: the claim, the request, how many of it there are already."""

    claim: int
    request: int
    done: int = 0


class Search:
    """One search on one node."""

    def __init__(
        self,
        node: Node,
        pools: Sequence[Pool],
        allocated: Allocated,
        features: Features,
        out_of_time: Callable[[], bool],
    ) -> None:
        self._node = node
        self._pools = pools
        self._allocated = allocated
        self._features = features
        self._out_of_time = out_of_time
        self._counters = Counters(allocated)
        self._taking: dict[DeviceId, set[int]] = {}
        self._promised: dict[DeviceId, dict[str, int]] = {}
        self.tasks: list[Task] = []

    def run(self) -> bool:
        """Whether all claims of `tasks` can be had together.

        Raises:
            AllocationError: a selector fails, or a claim contradicts itself.
            AllocationTimeoutError: it took too long.
        """
        outcome = self._next(Place(0, 0), None, (0, 0))
        if outcome is _Outcome.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        return outcome is _Outcome.FOUND

    # -- which devices will do

    def selectable(self, claim: ResourceClaim, request: Request, device: OfferedDevice) -> bool:
        """Whether *device* is of the class, satisfies the selectors and can be used on the node.

        Raises:
            AllocationError: a selector or a node selector is wrong or fails.
        """
        if device.device.binding_conditions and not self._features.binding:
            return False
        chosen_class = request.device_class
        where = f"class {chosen_class.metadata.name}"
        if not self._satisfies(device, chosen_class.spec.selectors, where):
            return False
        if not self._satisfies(device, request.selectors, f"claim {claim.key}"):
            return False
        return not device.slice.by_device or device.place.holds(self._node)

    def _satisfies(self, device: OfferedDevice, selectors: Sequence[DeviceSelector], where: str) -> bool:
        for number, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            try:
                if not device.satisfies(expression, self._features.dialect):
                    return False
            except CompileError as fault:
                raise AllocationError(f"{where}: selector #{number}: CEL compile error: {fault}") from fault
            except EvaluationError as fault:
                raise AllocationError(f"{where}: selector #{number}: CEL runtime error: {fault}") from fault
        return True

    def has_room(self, request: Request, device: OfferedDevice, *, promised: bool = True) -> bool:
        """Whether the capacities of *device* are enough; always so if they do not count.

        Args:
            request: asks for them.
            device: has them.
            promised: whether what this search has given away counts.
        """
        if not self._features.consumable_capacity or not device.device.capacity:
            return not (self._features.consumable_capacity and request.capacity and request.capacity.requests)
        in_use = self._allocated.shared_capacity(device.id)
        given = self._promised.get(device.id, _NOTHING) if promised else _NOTHING
        return has_room(device.capacity, request.capacity, in_use, given)

    # -- the search

    def _next(self, at: Place, alternative: int | None, start: tuple[int, int]) -> _Outcome:
        """Find the device at *at* and all that follow.

        Args:
            at: what is looked for.
            alternative: which one is being tried; None: this is the first look at the request.
            start: pool and device to begin with, so that no set of devices is tried in two orders.
        """
        if self._out_of_time():
            raise AllocationTimeoutError("timed out")
        if at.claim >= len(self.tasks):
            return _Outcome.FOUND
        task = self.tasks[at.claim]
        if at.request >= len(task.requests):
            following = self._next(Place(at.claim + 1, 0), None, (0, 0))
            return _Outcome.NONE if following is _Outcome.TOO_MANY else following
        ways = task.requests[at.request]
        if alternative is None:
            if ways[0].request.parent:
                return self._any_of(at, len(ways))
            alternative = 0
        wanted = ways[alternative]
        everything = wanted.request.mode == ALL
        if everything and not wanted.everything:
            return _Outcome.NONE
        if at.done >= wanted.count:
            return self._next(Place(at.claim, at.request + 1), None, (0, 0))
        if len(task.chosen) + wanted.count - at.done > MOST_DEVICES:
            return _Outcome.TOO_MANY
        if everything:
            return self._all_of(at, alternative, wanted)
        return self._some_of(at, alternative, wanted, start)

    def _any_of(self, at: Place, ways: int) -> _Outcome:
        outcome = _Outcome.TOO_MANY
        for alternative in range(ways):
            tried = self._next(at, alternative, (0, 0))
            if tried is _Outcome.FOUND:
                return tried
            if tried is _Outcome.NONE:
                outcome = tried
        return outcome

    def _all_of(self, at: Place, alternative: int, wanted: Wanted) -> _Outcome:
        """The order does not matter: each device has to be had."""
        candidate = wanted.everything[at.done]
        give_back = self._take(at, wanted.request, candidate, must=True)
        if give_back is None:
            return _Outcome.NONE
        outcome = self._next(at._replace(done=at.done + 1), alternative, (0, 0))
        if outcome is not _Outcome.FOUND:
            give_back()
        return outcome

    def _some_of(self, at: Place, alternative: int, wanted: Wanted, start: tuple[int, int]) -> _Outcome:
        request = wanted.request
        for number in range(start[0], len(self._pools)):
            pool = self._pools[number]
            if not pool.usable:
                continue
            fits = wanted.fits.setdefault(number, [None] * len(pool.devices))
            for position in range(start[1] if number == start[0] else 0, len(fits)):
                if fits[position] is False:
                    continue
                device = pool.devices[position]
                if self._is_taken(device.id, request, at.claim):
                    continue
                if fits[position] is None:
                    fits[position] = self._may_fit(at, request, device)
                if not fits[position] or (device.id in self._promised and not self.has_room(request, device)):
                    continue
                give_back = self._take(at, request, Candidate(device, pool), must=False)
                if give_back is None:
                    continue
                outcome = self._next(at._replace(done=at.done + 1), alternative, (number, position + 1))
                if outcome is _Outcome.FOUND:
                    return outcome
                give_back()
                if outcome is _Outcome.TOO_MANY:
                    return outcome
        return _Outcome.NONE

    def _may_fit(self, at: Place, request: Request, device: OfferedDevice) -> bool:
        """Whether *device* will do for *request* at all; what is taken during the search does not count."""
        if not self.selectable(self.tasks[at.claim].claim, request, device):
            return False
        if not self.has_room(request, device, promised=False):
            return False
        # Of a device with counters more is left behind than this answer, see `_take`.
        return bool(device.consumption) or not self._is_kept_off(request, device)

    def _is_kept_off(self, request: Request, device: OfferedDevice) -> bool:
        return self._features.taints and kept_off(device.device.taints, request)

    def _is_taken(self, device: DeviceId, request: Request, claim: int) -> bool:
        takers = self._taking.get(device)
        if request.admin:
            return takers is not None and claim in takers
        return bool(takers) or self._allocated.takes(device)

    # -- taking one device

    def _take(self, at: Place, request: Request, candidate: Candidate, *, must: bool) -> Callable[[], None] | None:
        """Take a device that is selectable, and say how to give it back; None if it cannot be taken.

        Raises:
            AllocationError: it *must* be taken, and a condition of the claim forbids it.
        """
        device, pool = candidate
        features = self._features
        shared = features.consumable_capacity and device.shared
        if not (shared and request.admin) and self._is_taken(device.id, request, at.claim):
            return None
        if device.consumption and not self._takes_counters(device, pool, shared=shared):
            return None
        if self._is_kept_off(request, device):
            return None
        if not self._meets_conditions(at, request, device, must=must):
            return None
        takers = self._taking.setdefault(device.id, set())
        if not shared:
            takers.add(at.claim)
        # Checked once more: an earlier request may have taken what was left. As upstream, the marks made so far stay.
        if device.id in self._promised and not self.has_room(request, device):
            return None
        shares = self._share(device, request) if shared else None
        task = self.tasks[at.claim]
        length = len(task.chosen)
        task.chosen.append(Chosen(device, request, shares))

        def give_back() -> None:
            for constraint in task.constraints:
                constraint.remove(request.base, request.alternative, device)
            takers.discard(at.claim)
            if shares is not None:
                self._unshare(device, shares)
            elif device.consumption and features.partitionable:
                self._counters.give_back(device, pool)
            del task.chosen[length:]

        return give_back

    def _takes_counters(self, device: OfferedDevice, pool: Pool, *, shared: bool) -> bool:
        """A device that is shared already has taken its counters before."""
        if not self._features.partitionable:
            return False
        if shared and (self._allocated.has_capacity(device.id) or device.id in self._promised):
            return True
        return self._counters.take(device, pool)

    def _meets_conditions(self, at: Place, request: Request, device: OfferedDevice, *, must: bool) -> bool:
        task = self.tasks[at.claim]
        for number, constraint in enumerate(task.constraints):
            if constraint.add(request.base, request.alternative, device):
                continue
            if must:
                what = f"claim {task.claim.key}, request {request.name}: cannot add device {'/'.join(device.id)}"
                raise AllocationError(f"{what} because a claim constraint would not be satisfied")
            for before in task.constraints[:number]:
                before.remove(request.base, request.alternative, device)
            return False
        return True

    def _share(self, device: OfferedDevice, request: Request) -> dict[str, Amount]:
        shares = taken_by(request.capacity, device.capacity)
        promised = self._promised.setdefault(device.id, {})
        for name, amount in shares.items():
            promised[name] = promised.get(name, 0) + amount.nanos
        return shares

    def _unshare(self, device: OfferedDevice, shares: dict[str, Amount]) -> None:
        promised = self._promised.get(device.id)
        if promised is None or not shares:
            return
        for name, amount in shares.items():
            if name in promised:
                promised[name] -= amount.nanos
        if not any(promised.values()):
            del self._promised[device.id]
