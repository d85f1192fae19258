"""What every part of the loop shares: the tables, the queue, the profiles, the clock and the world outside."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from extender.basics.clock import Clock
from extender.carrying import Api
from extender.client.extenders import HttpExtender
from extender.client.texts import Texts
from extender.cluster.state import ClusterState
from extender.decide.engine import Engine
from extender.decide.sampling import Search
from extender.framework.profiles import Profile
from extender.framework.waiting import WaitingPods
from extender.loop.outside import Leadership, Recorder, Tally
from extender.queueing.waiting import SchedulingQueue

log = logging.getLogger("extender.loop")


@dataclass(slots=True)
class Desk:
    """One scheduler's belongings. Only the event loop touches them.

    Attributes:
        state, queue: what is known, and who waits.
        profiles, engines: by scheduler name.
        waiting: pods that Permit holds.
        binding: pods in their binding cycle that may still be called back, by uid (E050).
        wake: to be called when the queue may have a pod, or a pod on Permit its fate.
        nominates_in_advance: gate NominatedNodeNameForExpectation. Source: A028.
        sleep: waits so many seconds.
        extenders: outbound HTTP extenders, in the order they are asked.
        texts: nodes as they are sent to extenders.
        jobs: bindings, evictions and status writes that are under way; what is begun is finished before we end.
    """

    state: ClusterState
    queue: SchedulingQueue
    profiles: Mapping[str, Profile]
    engines: Mapping[str, Engine]
    api: Api
    recorder: Recorder
    leadership: Leadership
    tally: Tally
    clock: Clock
    chance: Random
    wake: Callable[[], None]
    nominates_in_advance: bool = True
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    search: Search = field(default_factory=Search)
    extenders: Sequence[HttpExtender] = ()
    texts: Texts = field(default_factory=Texts)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    binding: dict[str, Callable[[str], None]] = field(default_factory=dict)
    jobs: set[asyncio.Task[None]] = field(default_factory=set)
