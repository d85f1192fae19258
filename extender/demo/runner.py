"""Run the demo: the fake API server, the scheduler, the scenario and the screen, in one event loop."""

import asyncio
import contextlib
import signal
import webbrowser
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from extender.app.pages.ui_pages import make_pages_of_scheduler
from extender.app.standalone import StandaloneScheduler
from extender.app.wiring import SchedulerSetup
from extender.basics.clock import SystemClock
from extender.client.kubeconfig import CredentialSource
from extender.demo.scenario import DemoSize, Scenario, build_scenario, run_scenario
from extender.demo.screen import Screen, format_entry, format_summary
from extender.demo.timeline import Timeline
from extender.fake_apiserver.kubelets import KubeletTiming
from extender.fake_apiserver.server import FakeApiServer
from extender.metrics.scheduler_metrics import make_scheduler_metrics
from extender.serving.http_server import format_listener_url, listen, serve_http
from extender.ui.mounted_pages import HostCheckMiddleware, ResponseHeadersMiddleware
from extender.ui.pages import PREFIX

_START_SECONDS, _JOB_SECONDS, _STOP_SECONDS = 0.3, 3.0, 0.7
"""Seconds that pods take to start, to finish, and to stop, in the scenario's time."""
_MAX_SECONDS_IN_UNSCHEDULABLE_PODS: Final = 300.0
_QUIET_SECONDS: Final = 0.5
"""The scenario is over after this number of seconds without a change."""
_QUIET_TIMEOUT: Final = 30.0
"""The maximum seconds to wait after the last step until no object changes."""
_REFRESH_SECONDS: Final = 0.12


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        speed: the scenario's seconds per real second.
        keep_running: whether the demo continues after the end of the scenario, until a signal.
        port: the port of the API server; 0 selects a free port.
        serves_ui: whether the pages of the scheduler are served on loopback.
        opens_browser: whether the pages are opened in the browser.
    """

    setup: SchedulerSetup
    size: DemoSize = field(default_factory=DemoSize)
    speed: float = 1.0
    keep_running: bool = False
    port: int = 0
    serves_ui: bool = False
    opens_browser: bool = False


class SchedulerEndedError(Exception):
    """The scheduler ended unexpectedly."""


async def run_demo(options: DemoOptions, console: Console) -> Timeline:
    """Run the demo, print its screen and summary on *console*, and return the timeline.

    Raises:
        OSError: the port is in use.
        SchedulerEndedError: the scheduler ended unexpectedly.
        ApiError: the scheduler cannot use the API server.
    """
    clock, scenario = SystemClock(), build_scenario(options.size)
    kubelet_timing = KubeletTiming(
        _START_SECONDS / options.speed, _JOB_SECONDS / options.speed, _STOP_SECONDS / options.speed
    )
    server = FakeApiServer(seed=options.size.seed, kubelet_timing=kubelet_timing)
    async with contextlib.AsyncExitStack() as stack:
        await server.start(options.port)
        stack.push_async_callback(server.stop)
        temporary_directory = stack.enter_context(TemporaryDirectory(prefix="extender-demo-"))
        kubeconfig = Path(temporary_directory) / "kubeconfig"
        kubeconfig.write_text(server.kubeconfig())
        scheduler = StandaloneScheduler(
            options.setup,
            CredentialSource(kubeconfig=str(kubeconfig)),
            clock,
            make_scheduler_metrics(options.setup.profiles),
            max_in_unschedulable_pods_seconds=_MAX_SECONDS_IN_UNSCHEDULABLE_PODS,
            rng=Random(options.size.seed),  # noqa: S311  reproducible
        )
        for manifest in scenario.objects:
            server.api.create_from_manifest(manifest)
        timeline = Timeline(server.store, clock)
        title = f"{scenario.title}: an API server at {server.url}, and extender as its scheduler"
        hints = _make_usage_hints(kubeconfig) if options.keep_running else ()
        if options.serves_ui:
            url = await stack.enter_async_context(_serve_pages(scheduler))
            hints = (f"The pages are at {url}", *hints)
            if options.opens_browser:
                await asyncio.to_thread(webbrowser.open, url)
        screen = Screen(timeline, title, hints)
        stop_requested = stack.enter_context(_handle_stop_signals())
        await stack.enter_async_context(_show_screen(screen, console))
        await _run_scheduler_until_done(
            scheduler, stop_requested, lambda: _play_scenario(options, scenario, server, scheduler, timeline)
        )
    console.print(format_summary(timeline))
    return timeline


@contextlib.asynccontextmanager
async def _serve_pages(scheduler: StandaloneScheduler) -> AsyncIterator[str]:
    """Serve the pages of the scheduler on a free port of loopback inside the block, and yield their address."""
    pages, close = make_pages_of_scheduler(scheduler, "demo")
    app = ResponseHeadersMiddleware(HostCheckMiddleware(pages))
    with listen("127.0.0.1", 0) as listener:
        async with serve_http(app, listener, None):
            try:
                yield f"{format_listener_url(listener)}{PREFIX}/"
            finally:
                close()  # otherwise the server would wait for the streams


async def _run_scheduler_until_done(
    scheduler: StandaloneScheduler,
    stop_requested: asyncio.Event,
    play_scenario: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Run the scheduler until the scenario is over or a stop signal arrives.

    Raises:
        SchedulerEndedError: the scheduler ended before the scenario.
    """
    stop_scheduler = asyncio.Event()
    scheduler_task = asyncio.create_task(scheduler.run(stop_scheduler))
    tasks = [asyncio.create_task(play_scenario()), asyncio.create_task(stop_requested.wait())]
    try:
        await asyncio.wait((scheduler_task, *tasks), return_when=asyncio.FIRST_COMPLETED)
        if scheduler_task.done():
            raise SchedulerEndedError(f"the scheduler ended with {scheduler_task.result()}")
        if tasks[0].done():
            tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        stop_scheduler.set()
        await asyncio.wait((scheduler_task,))


async def _play_scenario(
    options: DemoOptions, scenario: Scenario, server: FakeApiServer, scheduler: StandaloneScheduler, timeline: Timeline
) -> None:
    """Run the scenario, and wait until no object changes. Then wait forever if `keep_running` is set."""
    await scheduler.informers.wait_for_sync()
    timeline.start()
    await run_scenario(
        server.api,
        scenario,
        lambda step: timeline.add_message(step.message) if step.message else None,
        speed=options.speed,
    )
    deadline, previous_version = asyncio.get_running_loop().time() + _QUIET_TIMEOUT, -1
    while previous_version != server.store.resource_version and asyncio.get_running_loop().time() < deadline:
        previous_version = server.store.resource_version
        await asyncio.sleep(_QUIET_SECONDS)
    if options.keep_running:
        await asyncio.Event().wait()


def _make_usage_hints(kubeconfig: Path) -> tuple[str, ...]:
    return (
        f"export KUBECONFIG={kubeconfig}",
        "kubectl get pods -A -w    kubectl describe pod -n batch month-end",
        "kubectl drain node-1 --force",
        "Ctrl-C ends the demo.",
    )


@contextlib.asynccontextmanager
async def _show_screen(screen: Screen, console: Console) -> AsyncIterator[None]:
    """Render the screen while the context is active. Without a terminal, print each entry as a line."""
    if not console.is_terminal:
        for text in (screen.title, *screen.footer):
            console.print(text, soft_wrap=True, highlight=False)
        screen.timeline.on_entry = lambda entry: console.print(format_entry(entry), soft_wrap=True, highlight=False)
        yield
        return
    screen.timeline.on_entry = screen.add_entry
    with Live(screen, console=console, auto_refresh=False, transient=True) as live:
        draw_task = asyncio.create_task(_draw(live))
        try:
            yield
        finally:
            draw_task.cancel()


async def _draw(live: Live) -> None:
    while True:
        live.refresh()
        await asyncio.sleep(_REFRESH_SECONDS)


@contextlib.contextmanager
def _handle_stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that is set on SIGINT and SIGTERM."""
    stop_requested, loop = asyncio.Event(), asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for signal_number in signals:
        loop.add_signal_handler(signal_number, stop_requested.set)
    try:
        yield stop_requested
    finally:
        for signal_number in signals:
            loop.remove_signal_handler(signal_number)
