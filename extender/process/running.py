"""One scheduler process from start to end: service, scheduler, signals, exit status.

    credentials -> port -> certificate -> API server answers -> service, scheduler ... -> drained -> service closed

Whatever is wrong before the scheduler runs ends the process with one line. Source: A.1, H052, I002, G057.
"""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
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
from extender.process.figures import dump
from extender.process.telling import AGENT, BEHAVES_AS, Told, told, watching
from extender.process.telling import service as service_of
from extender.standalone import Standalone
from extender.web.certificates import CertificateError, ServingCertificate, serving_certificate, trust
from extender.web.guard import Guard
from extender.web.serving import listening, serving
from extender.web.settings import Serving

log = logging.getLogger("extender.process")

_FIRST_ANSWER: Final = 10.0
"""Seconds the API server has for its first answer."""

_LOOK_AT_FILES: Final = 10.0
"""Seconds between looks at the certificate's files."""


class StartError(Exception):
    """The process cannot begin its work; one line."""


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
    with _signals(scheduler, seen, stopping), _port(options.serving) as listener:
        try:
            certificate = _certificate(options.serving)
            await _meet(scheduler, server)
            _introduce(options)
            async with _served(options, scheduler, seen, clock, listener, certificate):
                return await scheduler.run(stopping)
        finally:
            await scheduler.transport.close()


async def _meet(scheduler: Standalone, server: str) -> None:
    """See that the API server is there and knows us; any answer but a 401 will do.

    Raises:
        StartError: it is not, or does not.
    """
    try:
        await scheduler.transport.call(Request("GET", "/version", seconds=_FIRST_ANSWER))
    except UnreachableError as fault:
        raise StartError(
            f"the API server {server} cannot be reached: {fault}; check --kubeconfig, --master and the network"
        ) from fault
    except UnauthorizedError as fault:
        raise StartError(f"the API server {server} does not accept our credentials: {fault}") from fault
    except ApiError as fault:
        log.warning("The API server does not tell its version", extra={"err": str(fault)})


@contextlib.contextmanager
def _port(settings: Serving | None) -> Iterator[socket.socket | None]:
    """The port is ours for as long as the block lasts.

    Raises:
        StartError: it is somebody else's, or there is no such address.
    """
    if settings is None:
        yield None
        return
    where = f"[{settings.address}]" if ":" in settings.address else settings.address
    try:
        listener = listening(settings.address, settings.port, share_port=settings.share_port)
    except OSError as fault:
        why = os.strerror(fault.errno).lower() if fault.errno else str(fault)
        way = "; choose another with --secure-port" if fault.errno == errno.EADDRINUSE else ""
        raise StartError(f"failed to listen on {where}:{settings.port}: {why}{way}") from fault
    with listener:
        yield listener


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
                options.authentication, options.authorization, options.place, clock, AGENT, seen.metrics
            )
            for transport in known.transports:
                stack.push_async_callback(transport.close)
            trust(certificate.context, known.authorities)
        except (AccessError, CertificateError) as fault:
            raise StartError(str(fault)) from fault
        app = Guard(service_of(options, scheduler, seen), known.authenticator, known.authorizer)
        watch = asyncio.create_task(_keep_fresh(certificate), name="certificate")
        stack.callback(watch.cancel)
        address, port = listener.getsockname()[:2]
        log.info("Serving securely", extra={"address": f"{address}:{port}"})
        await stack.enter_async_context(serving(app, listener, certificate.context))
        yield


def _certificate(settings: Serving | None) -> ServingCertificate | None:
    """What the service shows.

    Raises:
        StartError: a file or setting cannot be used.
    """
    try:
        return None if settings is None else serving_certificate(settings)
    except CertificateError as fault:
        raise StartError(str(fault)) from fault


def _introduce(options: ScheduleOptions) -> None:
    """Say in the log what begins its work, and with what."""
    for note in options.notes:
        log.warning("%s", note)
    for name, value in options.flags.items():
        log.log(verbosity(1), 'FLAG: --%s="%s"', name, value)
    log.info("Starting Kubernetes Scheduler", extra={"version": __version__, "kubernetes": BEHAVES_AS})
    log.log(verbosity(2), "Using component config", extra={"config": options.scheduling.defaulted()})


async def _keep_fresh(certificate: ServingCertificate) -> None:
    """Take over a rotated certificate."""
    while certificate.files is not None:
        await asyncio.sleep(_LOOK_AT_FILES)
        try:
            if certificate.refresh():
                log.info("The certificate was read again", extra={"file": str(certificate.files[0])})
        except CertificateError as fault:
            log.warning("The certificate cannot be read again, the old one serves on", extra={"err": str(fault)})


@contextlib.contextmanager
def _signals(scheduler: Standalone, seen: Told, stopping: asyncio.Event) -> Iterator[None]:
    """TERM and INT stop the process in good order, a second one at once; USR2 has everything written to the log."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if stopping.is_set():
            os._exit(1)
        log.info("Told to stop; finishing what was begun")
        seen.health.draining = True
        stopping.set()

    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGUSR2: lambda: dump(scheduler)}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
