"""One scheduler process from start to end: service, scheduler, signals, exit status.

    credentials -> port -> certificate -> API server answers -> service, scheduler ... -> drained -> service closed

Whatever is wrong before the scheduler runs ends the process with one line. Source: A.1, H052, I002, G057.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

from extender import __version__
from extender.basics.clock import Clock, SystemClock
from extender.client.credentials import Credentials
from extender.client.errors import ApiError, UnauthorizedError, UnreachableError
from extender.client.transport import Request
from extender.observe.logs import verbosity
from extender.options import ScheduleOptions
from extender.process.access import AccessError, access
from extender.process.entrance import StartError, certificate_of, port_of, signals
from extender.process.figures import dump
from extender.process.freshness import keep_fresh, renewing
from extender.process.telling import AGENT, BEHAVES_AS, Told, told, watching
from extender.process.telling import service as service_of
from extender.standalone import Standalone
from extender.web.certificates import CertificateError, ServingCertificate
from extender.web.guard import Guard
from extender.web.serving import serving
from extender.web.settings import Serving

log = logging.getLogger("extender.process")

_FIRST_ANSWER: Final = 10.0
"""Seconds the API server has for its first answer."""

_AGAIN: Final = 1.0
"""Seconds until a server that cannot be reached is tried again."""


async def run(options: ScheduleOptions) -> int:
    """Schedule until told to stop (0) or the lease is lost (1).

    Raises:
        StartError: the port, a certificate, or the API server is not as it must be.
        ApiError: there are no usable credentials.
    """
    clock = SystemClock()
    seen = told(options, clock.now())
    stopping = asyncio.Event()
    server = (await Credentials(options.place, clock).current()).identity.server
    seen.metrics.host = urlsplit(server).netloc
    try:
        scheduler = Standalone(options.scheduling, options.place, clock, watching(seen), max_parked=options.max_parked)
    except (OSError, ValueError) as fault:
        raise StartError(str(fault)) from fault

    def stop() -> None:
        seen.health.draining = True
        stopping.set()

    with signals(stop, lambda: dump(scheduler)), _port(options.serving) as listener:
        try:
            certificate = _certificate(options)
            await _meet(scheduler, server, stopping)
            _introduce(options)
            async with _served(options, scheduler, seen, clock, listener, certificate):
                return await scheduler.run(stopping)
        finally:
            await scheduler.transport.close()


async def _meet(scheduler: Standalone, server: str, stopping: asyncio.Event) -> None:
    """See that the API server is there and knows us; any answer but a 401 will do.

    A server that starts with us is waited for, as kube-controller-manager does; kube-scheduler waits without end, and
    without a word of what is wrong.

    Raises:
        StartError: it is not, or does not.
    """
    now = asyncio.get_running_loop().time
    end = now() + _FIRST_ANSWER
    while not stopping.is_set():
        try:
            await scheduler.transport.call(Request("GET", "/version", seconds=max(end - now(), _AGAIN)))
        except UnreachableError as fault:
            if now() + _AGAIN > end:
                raise StartError(
                    f"the API server {server} cannot be reached: {fault}; check --kubeconfig, --master and the network"
                ) from fault
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), _AGAIN)
            continue
        except UnauthorizedError as fault:
            raise StartError(f"the API server {server} does not accept our credentials: {fault}") from fault
        except ApiError as fault:
            log.warning("The API server does not tell its version", extra={"err": str(fault)})
        return


def _port(settings: Serving | None) -> contextlib.AbstractContextManager[socket.socket | None]:
    return contextlib.nullcontext() if settings is None else port_of(settings, "--secure-port")


def _certificate(options: ScheduleOptions) -> ServingCertificate | None:
    if options.serving is None:
        return None
    return certificate_of(options.serving, options.authentication.client_authority)


@contextlib.asynccontextmanager
async def _served(
    options: ScheduleOptions,
    scheduler: Standalone,
    seen: Told,
    clock: Clock,
    listener: socket.socket | None,
    certificate: ServingCertificate | None,
) -> AsyncIterator[None]:
    """The service answers for as long as the block lasts."""
    if listener is None or certificate is None:
        yield
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            known = await access(
                options.authentication,
                options.authorization,
                options.place,
                clock,
                AGENT,
                seen.metrics,
                lambda: certificate.authorities,
            )
            for transport in known.transports:
                stack.push_async_callback(transport.close)
            certificate.trust(known.authorities)
        except (AccessError, CertificateError) as fault:
            raise StartError(str(fault)) from fault
        app = Guard(service_of(options, scheduler, seen), known.authenticator, known.authorizer)
        watch = asyncio.create_task(keep_fresh("certificate", renewing(certificate)), name="certificate")
        stack.callback(watch.cancel)
        address, port = listener.getsockname()[:2]
        log.info("Serving securely", extra={"address": f"{address}:{port}"})
        await stack.enter_async_context(serving(app, listener, certificate.context))
        yield


def _introduce(options: ScheduleOptions) -> None:
    """Say in the log what begins its work, and with what."""
    for note in options.notes:
        log.warning("%s", note)
    for name, value in options.flags.items():
        log.log(verbosity(1), 'FLAG: --%s="%s"', name, value)
    log.info("Starting Kubernetes Scheduler", extra={"version": __version__, "kubernetes": BEHAVES_AS})
    log.log(verbosity(2), "Using component config", extra={"config": options.scheduling.defaulted()})
