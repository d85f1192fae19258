"""The process of `extender schedule`: startup, HTTPS port, scheduler, signals, exit status.

    credentials -> port -> certificate -> API server check -> HTTPS service and scheduler ... -> drain -> close

An error before the scheduler runs ends the process with one line.

Source: cmd/kube-scheduler/app/server.go, Run; component-base/cli/run.go, Run (1.36).
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from extender import __version__
from extender.app.delegated_auth import DelegatedAuthError, open_delegated_auth
from extender.app.introspection import dump_to_log
from extender.app.options import ScheduleOptions
from extender.app.pages.ui_pages import mount_scheduler_pages
from extender.app.reload import reload_periodically
from extender.app.server_release import warn_about_other_release
from extender.app.standalone import StandaloneScheduler
from extender.app.startup import StartError, handle_signals, load_certificate, open_listening_socket
from extender.app.telemetry import Telemetry, make_scheduler_diagnostics_app, make_telemetry
from extender.basics.clock import SystemClock
from extender.client.errors import ApiError, UnauthorizedError, UnreachableError
from extender.client.transport import Request
from extender.logs.klog import verbosity
from extender.serving.auth_middleware import AuthMiddleware
from extender.serving.http_server import serve_http
from extender.serving.rejection_log import format_address
from extender.serving.tls import CertificateError, ServingCertificate

log = logging.getLogger("extender.app")

_CONNECT_TIMEOUT_SECONDS: Final = 10.0
"""Time limit for the first response of the API server."""

_RETRY_SECONDS: Final = 1.0
"""Seconds between two connection attempts."""


async def run(options: ScheduleOptions) -> int:
    """Schedule until a signal stops the process (exit status 0), or until the lease is lost (exit status 1).

    Raises:
        StartError: the port or a certificate cannot be used, or the API server cannot be reached.
        ApiError: no credentials can be used.
    """
    clock = SystemClock()
    telemetry = make_telemetry(options, clock.now())
    stopping = asyncio.Event()
    try:
        scheduler = StandaloneScheduler(
            options.setup,
            options.credential_source,
            clock,
            telemetry.metrics,
            max_in_unschedulable_pods_seconds=options.max_in_unschedulable_pods_seconds,
        )
    except (OSError, ValueError) as error:
        raise StartError(str(error)) from error
    server = await scheduler.credentials.get_server()
    telemetry.metrics.host = urlsplit(server).netloc

    def stop() -> None:
        telemetry.health.draining = True
        stopping.set()

    with handle_signals(stop, lambda: dump_to_log(scheduler)), contextlib.ExitStack() as stack:
        listener = certificate = None
        try:
            if options.serving is not None:
                listener = stack.enter_context(open_listening_socket(options.serving, "--secure-port"))
                certificate = load_certificate(options.serving, options.authentication.client_ca_file)
            await _wait_for_api_server(scheduler, server, stopping)
            if stopping.is_set():
                return 0
            _log_start(options)
            async with _serve_diagnostics(options, scheduler, telemetry, listener, certificate):
                return await scheduler.run(stopping)
        finally:
            await scheduler.transport.close()


async def _wait_for_api_server(scheduler: StandaloneScheduler, server: str, stopping: asyncio.Event) -> None:
    """Wait until the API server responds with anything but 401; warn if it has another release.

    The time limit is ten seconds, as in kube-controller-manager; kube-scheduler retries forever, without a message.
    """
    get_time = asyncio.get_running_loop().time
    deadline = get_time() + _CONNECT_TIMEOUT_SECONDS
    while not stopping.is_set():
        try:
            timeout = max(deadline - get_time(), _RETRY_SECONDS)
            version = await _call_until_stopped(
                scheduler.transport.call(Request("GET", "/version", timeout=timeout)), stopping, timeout
            )
            if version is not None:
                warn_about_other_release(version, scheduler.setup.gates.release)
            elif not stopping.is_set():
                log.warning("Cannot read the version of the API server", extra={"err": "it asks to retry later"})
        except UnreachableError as error:
            if get_time() + _RETRY_SECONDS > deadline:
                reason, hint = error.connect_error or error.message, "check --kubeconfig, --master and the network"
                raise StartError(f"the API server {server} cannot be reached: {reason}; {hint}") from error
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS):
                    await stopping.wait()
            continue
        except UnauthorizedError as error:
            raise StartError(f"the API server {server} does not accept our credentials: {error}") from error
        except ApiError as error:
            log.warning("Cannot read the version of the API server", extra={"err": str(error)})
        return


async def _call_until_stopped(
    call: Coroutine[Any, Any, bytes], stopping: asyncio.Event, timeout: float
) -> bytes | None:
    """Return the result of *call*; None if *stopping* is set first.

    A server that responds with 429 and Retry-After is asked again for minutes; so *call* is cancelled soon after
    *timeout* seconds, and the result is None.
    """
    request, stop = asyncio.create_task(call), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({request, stop}, timeout=timeout + _RETRY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        return request.result() if request.done() else None
    finally:
        request.cancel()
        stop.cancel()


@contextlib.asynccontextmanager
async def _serve_diagnostics(
    options: ScheduleOptions,
    scheduler: StandaloneScheduler,
    telemetry: Telemetry,
    listener: socket.socket | None,
    certificate: ServingCertificate | None,
) -> AsyncIterator[None]:
    """Serve the diagnostics pages (health, metrics, configuration, explain) over HTTPS inside the block."""
    if listener is None or certificate is None:
        yield
        return
    async with contextlib.AsyncExitStack() as stack:
        try:
            auth = await stack.enter_async_context(
                open_delegated_auth(
                    options.authentication,
                    options.authorization,
                    options.credential_source,
                    telemetry.metrics,
                    lambda: certificate.client_cas,
                )
            )
            certificate.trust_cas(auth.client_cas)
        except (DelegatedAuthError, CertificateError) as error:
            raise StartError(str(error)) from error
        app = make_scheduler_diagnostics_app(options, scheduler, telemetry)
        pages = mount_scheduler_pages(app, scheduler, telemetry.metrics.host) if options.serves_ui else None
        protected_app = AuthMiddleware(pages or app, auth.authenticator, auth.authorizer)
        for reload in (
            reload_periodically("certificate", partial(asyncio.to_thread, certificate.refresh)),
            reload_periodically("client CAs", partial(auth.refresh, certificate)),
        ):
            stack.callback(asyncio.create_task(reload).cancel)
        log.info("Serving securely", extra={"address": format_address(listener.getsockname())})
        await stack.enter_async_context(serve_http(protected_app, listener, certificate))
        if pages is not None:
            stack.callback(pages.close)  # otherwise the server would wait for the streams
        yield


def _log_start(options: ScheduleOptions) -> None:
    for warning in options.warnings:
        log.warning("%s", warning)
    for name, value in options.flags.items():
        log.log(verbosity(1), 'FLAG: --%s="%s"', name, value)
    release = options.setup.gates.release.version
    log.info("Starting Kubernetes Scheduler", extra={"version": __version__, "kubernetes": release})
    log.log(verbosity(2), "Using component config", extra={"config": options.setup.render_for_log()})
