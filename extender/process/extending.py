"""The process that answers the extender verbs, from start to end.

port -> certificate -> cluster joined -> verbs served, not ready -> everything listed: ready ... -> drained
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from cryptography import x509

from extender import __version__
from extender.client.kubeconfig import Place
from extender.options import ServeOptions
from extender.process.access import Reviews
from extender.process.backing import Backing, backing
from extender.process.entrance import certificate_of, port_of, signals
from extender.process.freshness import ConfigurationFile, Refresh, keep_fresh, renewing
from extender.web.answering import Traffic
from extender.web.callers import Authenticator
from extender.web.certificates import ServingCertificate
from extender.web.clients import Clients
from extender.web.guard import App, Guard, Without
from extender.web.rights import Authorizer
from extender.web.serving import DRAIN, KEEP_ALIVE, serving, url
from extender.web.settings import Authentication, Authorization, Serving

log = logging.getLogger("extender.process")

_STEP: Final = 0.05
"""Seconds between looks at how late the event loop is: often enough for a percentile of ten seconds."""


async def run(options: ServeOptions) -> int:
    """Answer until told to stop (0), or until nothing is learnt of the cluster any more (1).

    Raises:
        StartError: the port or a certificate is not as it must be.
        ApiError: there are no usable credentials.
    """
    stopping = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(port_of(options.serving, "--port"))
        certificate = None
        if options.serving.certificate:
            certificate = certificate_of(options.serving, options.client_authority)
        behind = await stack.enter_async_context(backing(options, stopping))
        for what, refresh in _fresh(options, behind, certificate).items():
            stack.callback(asyncio.create_task(keep_fresh(what, refresh, behind.reloads), name=what).cancel)

        def stop() -> None:
            behind.site.health.draining = True
            stopping.set()

        stack.enter_context(signals(stop))
        stack.callback(asyncio.create_task(_lag(behind.site.traffic), name="lag").cancel)
        context = None if certificate is None else certificate.context
        app = _guarded(behind, options, certificate)
        await stack.enter_async_context(serving(app, listener, context, closing=DRAIN, keep_alive=KEEP_ALIVE))
        if options.pages is not None:
            await stack.enter_async_context(_pages(options.pages, Without(app, frozenset(behind.site.served.values()))))
        _introduce(options, behind, url(listener, secure=certificate is not None))
        return await _until(stopping, behind.job)


@contextlib.asynccontextmanager
async def _pages(settings: Serving, app: App) -> AsyncIterator[None]:
    """Health, metrics and explain answer over HTTPS for as long as the block lasts.

    Raises:
        StartError: the port or the certificate is not as it must be.
    """
    with port_of(settings, "--secure-port") as listener:
        certificate = certificate_of(settings)
        watch = asyncio.create_task(keep_fresh("certificate of the pages", renewing(certificate)))
        async with serving(app, listener, certificate.context):
            yield
        watch.cancel()


def _fresh(options: ServeOptions, behind: Backing, certificate: ServingCertificate | None) -> dict[str, Refresh]:
    """What is read again from its files while the process runs."""
    fresh: dict[str, Refresh] = {}
    if certificate is not None:
        fresh["certificate"] = renewing(certificate)
    if options.config:
        fresh["configuration"] = ConfigurationFile(Path(options.config), options.scheduling, behind.install).refresh
    return fresh


async def _lag(traffic: Traffic) -> None:
    """Tell how late the event loop comes back, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _STEP
        await asyncio.sleep(_STEP)
        traffic.lagged(max(0.0, loop.time() - due))


async def _until(stopping: asyncio.Event, job: asyncio.Task[int] | None) -> int:
    """Wait until told to stop, or until *job* ends, whose status it is then."""
    told = asyncio.create_task(stopping.wait())
    await asyncio.wait({told} if job is None else {told, job}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    return job.result() if job is not None and job.done() else 0


def _guarded(behind: Backing, options: ServeOptions, certificate: ServingCertificate | None) -> App:
    """The application with a guard in front, if somebody can say who may ask."""
    clients = None

    def vouching() -> tuple[x509.Certificate, ...]:
        return () if certificate is None else certificate.authorities

    if options.client_authority:
        clients = Clients(vouching, options.client_names)
    if clients is None and behind.writer is None:
        return behind.app
    reviewer = None if behind.writer is None else Reviews(behind.writer)
    authenticator = Authenticator(Authentication(), reviewer, behind.calls, renewed=vouching)
    authorizer = Authorizer(Authorization(always_allowed=options.always_allowed), reviewer, behind.calls)
    return Guard(behind.app, authenticator, authorizer, frozenset(behind.site.served.values()), clients)


def _introduce(options: ServeOptions, behind: Backing, address: str) -> None:
    """Say on standard error what is served where."""
    *others, last = behind.site.served
    verbs = f"{', '.join(others)} and {last}" if others else last
    if isinstance(options.cluster, Place):
        about = f"the cluster at {behind.calls.host}"
    elif options.cluster is None:
        about = "whatever nodes are sent along"
    else:
        state = behind.site.verbs.state
        about = f"{len(state.snapshot())} nodes with {len(state.placed)} pods"
    if not (options.client_authority or options.serving.local):
        log.warning("Everybody who reaches %s may ask filter, prioritize and preempt", address)
    log.info("%s at %s for %s", verbs, address, about, extra={"version": __version__})
