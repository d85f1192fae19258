"""A whole scheduler in memory: a server that remembers writes and tells them back, and a clock set by hand."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from extender import wiring
from extender.carrying import nobody
from extender.client.errors import ApiError, NotFoundError
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.config.gates import FeatureGates
from extender.decide.admission import first_to_hold
from extender.feed.handlers import Feed
from extender.framework.points import Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Status
from extender.loop.desk import Desk
from extender.loop.outside import Uncounted
from extender.loop.scheduler import Scheduler
from extender.objects.codec import from_builtins
from extender.objects.pod import Pod
from extender.queueing.waiting import QueueSettings, SchedulingQueue
from tests.build import a_cluster


class HandClock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return 1_772_323_200.0 + self.seconds


class Server:
    """Pods by key; binds and deletes them, and tells the feed. Fails as told."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.writes: list[Write] = []
        self.faults: dict[str, list[ApiError]] = {}
        self.tell: Callable[[Pod, Pod | None], None] = lambda old, new: None
        self.tells = True

    async def carry_out(self, write: Write, ask: Callable[[], None] = nobody, /) -> None:
        await asyncio.sleep(0)
        ask()
        self.writes.append(write)
        faults = self.faults.get(write.subresource or write.verb)
        if faults:
            raise faults.pop(0)
        if write.kind != "Pod":
            return
        old = self.pods.get(f"{write.namespace}/{write.name}")
        if old is None:
            raise NotFoundError("no such pod")
        if write.subresource == "binding":
            new = msgspec.structs.replace(
                old, spec=msgspec.structs.replace(old.spec, node_name=write.body["target"]["name"])
            )
            self._put(old, new)
        elif write.verb == "delete":
            del self.pods[old.key]
            self.tell(old, None)
        elif "nominatedNodeName" in write.body.get("status", {}):
            status = msgspec.structs.replace(
                old.status, nominated_node_name=write.body["status"]["nominatedNodeName"] or ""
            )
            self._put(old, msgspec.structs.replace(old, status=status))
        elif "nodeAllocatableResourceClaimStatuses" in write.body.get("status", {}):
            taken = write.body["status"]["nodeAllocatableResourceClaimStatuses"] or ()
            told = from_builtins({"status": {"nodeAllocatableResourceClaimStatuses": taken}}, Pod).status
            status = msgspec.structs.replace(
                old.status,
                node_allocatable_resource_claim_statuses=told.node_allocatable_resource_claim_statuses,
            )
            self._put(old, msgspec.structs.replace(old, status=status))

    def _put(self, old: Pod, new: Pod) -> None:
        self.pods[new.key] = new
        if self.tells:
            self.tell(old, new)

    def said(self, what: str) -> list[Write]:
        """The writes to a subresource, or of a verb."""
        return [write for write in self.writes if what in (write.subresource, write.verb)]


class Events:
    """Remembers what was told to users."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def event(self, pod: Pod, *, reason: str, note: str, **_: Any) -> None:
        self.told.append((pod.key, reason, note))


class Leader:
    """Leads until told otherwise."""

    leads = True

    def may_act(self) -> bool:
        return self.leads


class World:
    """A scheduler over nodes, with the default profile or *profile*."""

    def __init__(self, *things: Any, profile: Profile | None = None, gates: FeatureGates | None = None) -> None:
        self.clock, self.server, self.events, self.leader = HandClock(), Server(), Events(), Leader()
        self.profile = profile or wiring.scheduling(gates=gates).first
        self.state: ClusterState = a_cluster(*things, gates=gates)
        engine = wiring.engine()

        def gate(query: PodQuery, first: str) -> Status | None:
            return first_to_hold(query, self.state.snapshot(), self.profile, engine, first)

        self.queue = SchedulingQueue(
            {"default-scheduler": self.profile}, gate, QueueSettings(groups=self.profile.groups is not None)
        )
        self.desk = Desk(
            state=self.state,
            queue=self.queue,
            profiles={"default-scheduler": self.profile},
            engines={"default-scheduler": engine},
            api=self.server,
            recorder=self.events,
            leadership=self.leader,
            tally=Uncounted(),
            clock=self.clock,
            chance=Random(1),
            wake=lambda: None,
            sleep=self._sleep,
        )
        self.scheduler = Scheduler(self.desk)
        self.feed = Feed(self.state, self.scheduler, ["default-scheduler"])
        self.server.tell = self._tell
        for pod in self.state.placed.values():
            on_node = msgspec.structs.replace(pod.pod.spec, node_name=pod.node_name)
            self.server.pods[pod.key] = msgspec.structs.replace(pod.pod, spec=on_node)

    async def _sleep(self, seconds: float) -> None:
        self.clock.seconds += seconds
        await asyncio.sleep(0)

    def _tell(self, old: Pod, new: Pod | None) -> None:
        if new is None:
            self.feed.removed(old)
        else:
            self.feed.changed(old, new)

    def create(self, *pods: Pod) -> None:
        """Users create pods."""
        for pod in pods:
            self.server.pods[pod.key] = pod
            self.feed.added(pod)

    def attempt(self) -> None:
        """Let the scheduler make one attempt, and what it began come to its end."""
        asyncio.run(self._attempt())

    async def _attempt(self) -> None:
        await self.scheduler.turn()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    def run(self, turns: int = 1) -> None:
        """Let the scheduler work until nothing is left to do; *turns* times, two seconds apart."""
        asyncio.run(self._run(turns))

    async def _run(self, turns: int) -> None:
        for turn in range(turns):
            if turn:
                self.clock.seconds += 2
                self.scheduler.tick()
            for _ in range(200):
                stepped = self.desk.leadership.may_act() and await self.scheduler.turn()
                await asyncio.sleep(0)
                if not stepped and len(asyncio.all_tasks()) == 1:
                    break

    def node_of(self, pod: Pod) -> str:
        """Where the server has *pod*; empty if nowhere."""
        return self.server.pods[pod.key].spec.node_name
