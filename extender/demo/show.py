"""The demo as a whole: the sandbox, the scheduler, the story and the view, in one event loop."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from extender.basics.clock import SystemClock
from extender.client.kubeconfig import Place
from extender.demo.chronicle import Chronicle, Fact
from extender.demo.screen import Screen, line, summary
from extender.demo.story import Crowd, story
from extender.sandbox.nodes import Pace
from extender.sandbox.scenario import Scenario, play, prepare
from extender.sandbox.server import Sandbox
from extender.standalone import Standalone, Watching
from extender.wiring import Scheduling

_START, _JOB, _STOP = 0.3, 3.0, 0.7
"""Seconds of the story that pods take to start, to finish and to stop."""
_MAX_PARKED: Final = 300.0
_QUIET: Final = 0.5
"""Seconds without a change after which the story is over."""
_PATIENCE: Final = 30.0
"""Seconds after its last step in which that must come about."""
_REFRESH: Final = 0.12


@dataclass(frozen=True, slots=True)
class Show:
    """What to show.

    Attributes:
        scheduling: the scheduler's configuration with its plugins.
        crowd: the size of it.
        speed: how many seconds of the story pass in one.
        stays: keep it up when the story is over, until told to stop.
        port: of the API server; 0 takes a free one.
    """

    scheduling: Scheduling
    crowd: Crowd = field(default_factory=Crowd)
    speed: float = 1.0
    stays: bool = False
    port: int = 0


class SchedulerEndedError(Exception):
    """The scheduler ended before it was told to."""


async def run(show: Show, console: Console) -> Chronicle:
    """Show it on *console* from start to summary; what there was to see.

    Raises:
        OSError: the port is taken.
        SchedulerEndedError: the scheduler should still run.
        ApiError: the scheduler cannot use the sandbox.
    """
    clock, tale = SystemClock(), story(show.crowd)
    pace = Pace(_START / show.speed, _JOB / show.speed, _STOP / show.speed)
    sandbox = Sandbox(seed=show.crowd.seed, pace=pace)
    async with contextlib.AsyncExitStack() as stack:
        await sandbox.start(show.port)
        stack.push_async_callback(sandbox.stop)
        folder = stack.enter_context(TemporaryDirectory(prefix="extender-demo-"))
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(sandbox.kubeconfig())
        scheduler = Standalone(
            show.scheduling,
            Place(kubeconfig=str(kubeconfig)),
            clock,
            Watching(),
            max_parked=_MAX_PARKED,
            chance=Random(show.crowd.seed),  # noqa: S311  the same choices between equals
        )
        prepare(sandbox.api, tale)
        chronicle = Chronicle(sandbox.store, clock)
        title = f"{tale.title}: an API server at {sandbox.url}, and extender as its scheduler"
        screen = Screen(chronicle, title, _ways_in(kubeconfig) if show.stays else ())
        stopping = stack.enter_context(_signals())
        await stack.enter_async_context(_shown(screen, console))
        await _work(scheduler, stopping, lambda: _acts(show, tale, sandbox, scheduler, chronicle))
    console.print(summary(chronicle))
    return chronicle


async def _work(scheduler: Standalone, stopping: asyncio.Event, acts: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the scheduler until the acts are over or somebody says stop.

    Raises:
        SchedulerEndedError: it ended first.
    """
    ending = asyncio.Event()
    working = asyncio.create_task(scheduler.run(ending))
    others = [asyncio.create_task(acts()), asyncio.create_task(stopping.wait())]
    try:
        await asyncio.wait((working, *others), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            raise SchedulerEndedError(f"the scheduler ended with {working.result()}")
        if others[0].done():
            others[0].result()
    finally:
        for each in others:
            each.cancel()
        ending.set()
        await asyncio.wait((working,))


async def _acts(show: Show, tale: Scenario, sandbox: Sandbox, scheduler: Standalone, chronicle: Chronicle) -> None:
    """The story, and the calm after it; for ever if it is to stay."""
    await scheduler.watches.listed()
    chronicle.begin()
    await play(sandbox.api, tale, lambda step: chronicle.say(step.say) if step.say else None, speed=show.speed)
    end, before = asyncio.get_running_loop().time() + _PATIENCE, -1
    while before != sandbox.store.version and asyncio.get_running_loop().time() < end:
        before = sandbox.store.version
        await asyncio.sleep(_QUIET)
    if show.stays:
        await asyncio.Event().wait()


def _ways_in(kubeconfig: Path) -> tuple[str, ...]:
    return (
        f"export KUBECONFIG={kubeconfig}",
        "kubectl get pods -A -w    kubectl describe pod -n batch month-end    kubectl drain node-1 --force",
        "Ctrl-C ends it.",
    )


@contextlib.asynccontextmanager
async def _shown(screen: Screen, console: Console) -> AsyncIterator[None]:
    """Draw the screen as long as the block lasts; without a terminal print facts as lines."""
    if not console.is_terminal:
        for text in (screen.title, *screen.footer):
            console.print(text, soft_wrap=True, highlight=False)
        screen.chronicle.tell = lambda fact: _print(console, fact)
        yield
        return
    screen.chronicle.tell = screen.hear
    with Live(screen, console=console, auto_refresh=False, transient=True) as live:
        drawing = asyncio.create_task(_draw(live))
        try:
            yield
        finally:
            drawing.cancel()


async def _draw(live: Live) -> None:
    while True:
        live.refresh()
        await asyncio.sleep(_REFRESH)


def _print(console: Console, fact: Fact) -> None:
    console.print(line(fact), soft_wrap=True, highlight=False)


@contextlib.contextmanager
def _signals() -> Iterator[asyncio.Event]:
    """INT and TERM end the show in good order."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield stopping
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
