"""Plans carried out for one pod on its way to a node: what PreBind wants written and waited for, and the binding.

The core plans (`decide.committing`), this makes the calls. The loop and the verb bind both come by here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from extender.basics.clock import Clock
from extender.client.errors import ApiError, UnreachableError
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide import committing
from extender.decide.engine import Engine
from extender.decide.rechecking import refused
from extender.framework.points import Named, Plan, PreBind, Write
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.objects.node import Node

_UNCLEAR = 60.0
"""Seconds after which a binding that nobody has seen is taken for lost; the API server gives up on calls sooner."""

_STEP = 1.0
"""Seconds between looks at whether something has come about, as kube-scheduler takes. Source: B099."""


_BROKEN = Status(Code.ERROR)


class RejectedError(Exception):
    """The binding ends here; carries the status that says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def nobody(*_: object) -> None:
    """Neither hears nor asks anything."""


class Api(Protocol):
    """The write side of the API server."""

    async def carry_out(self, write: Write, ask: Callable[[], None] = nobody, /) -> None:
        """Make the call. What *ask*, called immediately before it is sent, raises ends it.

        Raises:
            client.errors.ApiError: it did not succeed, or its outcome is unknown.
        """


async def take_back(api: Api, writes: Sequence[Write], warn: Callable[[str], None]) -> None:
    """Make the calls that undo what a pod had written; one that fails is told to *warn*, no more. Source: B118."""
    for write in writes:
        try:
            await api.carry_out(write)
        except ApiError as wrong:
            warn(f"{write.kind} {write.namespace}/{write.name} could not be given back: {wrong}")


@dataclass(frozen=True, slots=True)
class Carrier:
    """Makes the calls for one pod, which is assumed on its node meanwhile.

    Attributes:
        pod, node: who goes where.
        chosen: the node as it was when it was chosen; None: not known, as time has passed since.
        profile: decides how.
        engine: asks its plugins.
        notes: of PreFilter, by plugin.
        state: the cluster, in which the pod is assumed.
        api: takes the calls.
        clock, sleep: time, and how to let it pass.
        goes_on: raises `RejectedError` if the pod must not go on; asked before each call.
        written: told of each call of PreBind, and whether it went well.
        announce: tells the user what is waited for: reason and note of an event about the pod.
        attached: told how the wait for a plan's `devices` ended, and the seconds it took.
    """

    pod: PodQuery
    node: str
    chosen: Node | None
    profile: Profile
    engine: Engine
    notes: dict[str, Any]
    state: ClusterState
    api: Api
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    goes_on: Callable[[], None]
    written: Callable[[Write, bool], None] = nobody
    announce: Callable[[str, str], None] = nobody
    attached: Callable[[Sequence[tuple[str, bool]], Status, float], None] = nobody

    @contextmanager
    def _told(self, point: str, plugin: Named | None = None) -> Iterator[None]:
        """Tell the observer how *point* ended, or *plugin* there, what it planned included. Source: H010, H012."""
        run = self.engine.run
        began = run.begin()

        def tell(status: Status | None) -> None:
            if plugin is None:
                run.passed(self.profile.scheduler_name, point, status, began)
            else:
                run.ended(plugin, point, status, began)

        try:
            yield
        except RejectedError as ended:
            tell(ended.status)
            raise
        except Exception:
            tell(_BROKEN)
            raise
        tell(None)

    async def prepare(self, groups: Sequence[Sequence[PreBind]]) -> None:
        """Carry out what the PreBind plugins want, those of a group side by side. Source: A032, A072.

        Raises:
            RejectedError: something did not come about.
        """
        with self._told("PreBind"):
            for group in groups:
                await asyncio.gather(*map(self._prepared, group))

    async def _prepared(self, plugin: PreBind) -> None:
        answer = committing.pre_bind(plugin, self.pod, self.node, self.state.snapshot(), self.engine, self.notes)
        if isinstance(answer, Status):
            if answer.ok:
                return
            raise RejectedError(answer)
        with self._told("PreBind", plugin):
            for write in answer.writes:
                self.goes_on()
                await self._write(plugin, write)
            await self._come_about(plugin.name, answer)

    async def _write(self, plugin: PreBind, write: Write) -> None:
        try:
            await self.api.carry_out(write)
        except ApiError as wrong:
            self.written(write, False)
            text = f'running PreBind plugin "{plugin.name}": {wrong}'
            raise RejectedError(Status(Code.ERROR, (text,), plugin.name)) from wrong
        self.written(write, True)

    async def _come_about(self, plugin: str, plan: Plan) -> None:
        """Wait for what *plan* waits for."""
        if plan.wait_for is None:
            return
        if plan.announced is not None:
            self.announce(*plan.announced)
        began = self.clock.monotonic()
        deadline = began + plan.timeout
        while True:
            answer = plan.wait_for(self.state.snapshot())
            if answer is None:
                self.goes_on()
                answer = plan.late if self.clock.monotonic() >= deadline else None
            if answer is not None:
                self.attached(plan.devices, answer, self.clock.monotonic() - began)
                if answer.ok:
                    return
                text = f'running PreBind plugin "{plugin}": {answer.message}'
                raise RejectedError(answer.by(plugin) if answer.rejected else Status(Code.ERROR, (text,), plugin))
            await self.sleep(_STEP)

    def still_fits(self) -> None:
        """Stop if the node is gone, or does not take the pod any more; asked as the binding is sent.

        Raises:
            RejectedError: it does not.
        """
        status = refused(self.pod, self.node, self.chosen, self.state, self.profile, self.engine)
        if status is not None:
            raise RejectedError(status)

    async def bind(self) -> None:
        """Have the pod bound by the first Bind plugin that does not skip. Source: A034, A035.

        Raises:
            RejectedError: it did not succeed, or the pod was not seen on its node within `_UNCLEAR` seconds.
        """
        with self._told("Bind"):
            answer = committing.bind(self.pod, self.node, self.profile, self.engine)
            if isinstance(answer, Status):
                raise RejectedError(answer)
            plugin, plan = answer
            with self._told("Bind", plugin):
                await self._bound(plugin, plan)

    async def _bound(self, plugin: Named, plan: Plan) -> None:
        """Make the calls. If their outcome is unknown the pod keeps its place until it is seen. Source: A042."""
        asked = False

        def ask() -> None:
            nonlocal asked
            if not asked:  # once it was sent nobody knows whether it was carried out: from then on it must be
                self.goes_on()
                self.still_fits()
                asked = True

        try:
            for write in plan.writes:
                await self.api.carry_out(write, ask)
        except ApiError as wrong:
            if isinstance(wrong, UnreachableError) and wrong.sent and await self._seen_there():
                return
            raise RejectedError(Status(Code.ERROR, (f'running Bind plugin "{plugin.name}": {wrong}',))) from wrong

    async def _seen_there(self) -> bool:
        """Whether the pod turns out to be on its node after all."""
        end = self.clock.monotonic() + _UNCLEAR
        while True:
            there = self.state.placed.get(self.pod.uid)
            if there is None or not there.assumed:
                return there is not None and there.node_name == self.node
            if self.clock.monotonic() >= end:
                return False
            await self.sleep(_STEP)
