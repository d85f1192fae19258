"""The process of `extender serve`: startup, HTTP ports, authentication, reloads, exit status.

port -> certificate -> informers started -> verbs served, not ready -> caches synced: ready ... -> drain
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from cryptography import x509
from starlette.types import ASGIApp

from extender import __version__
from extender.app.delegated_auth import ReviewClient, open_review_client
from extender.app.options import ServeOptions
from extender.app.pages.ui_pages import mount_extender_pages
from extender.app.reload import ConfigurationFile, RefreshFunction, reload_periodically
from extender.app.serve_backend import ServeBackend, open_backend
from extender.app.startup import handle_signals, load_certificate, open_listening_socket, wait_until_stopped
from extender.client.kubeconfig import CredentialSource
from extender.event_loop.turn_budget import observe_lag
from extender.serving.auth_middleware import AuthMiddleware, HiddenPathsMiddleware
from extender.serving.authentication import Authenticator
from extender.serving.authorization import Authorizer
from extender.serving.client_certs import ClientCertVerifier
from extender.serving.http_server import (
    VERBS_KEEP_ALIVE_SECONDS,
    VERBS_SHUTDOWN_SECONDS,
    format_listener_url,
    serve_http,
)
from extender.serving.serving_options import AuthenticationOptions, AuthorizationOptions, ServingOptions
from extender.serving.tls import ServingCertificate
from extender.ui.mounted_pages import LOOPBACK_HOSTS, HostCheckMiddleware, MountedPages

log = logging.getLogger("extender.app")

_PROBE_PATHS: Final = frozenset(("/healthz", "/livez", "/readyz"))


async def run(options: ServeOptions) -> int:
    """Serve until a signal stops the process, or until the informers or the scheduler end; return the exit status.

    Raises:
        StartError: a port or a certificate cannot be used.
        ApiError: no credentials can be used.
    """
    stopping = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(open_listening_socket(options.serving, "--port"))
        certificate = None
        if options.serving.cert_file:
            certificate = load_certificate(options.serving, options.client_ca_file)
        backend = await stack.enter_async_context(open_backend(options, stopping))
        configuration = ConfigurationFile(Path(options.config_file), options.setup, backend.apply_setup)
        for source, refresh in _make_refresh_functions(options, configuration, certificate).items():
            reload_task = asyncio.create_task(reload_periodically(source, refresh, backend.reload_metrics), name=source)
            stack.callback(reload_task.cancel)

        def stop() -> None:
            backend.extender_service.health.draining = True
            stopping.set()

        stack.enter_context(handle_signals(stop))
        observe = backend.extender_service.request_metrics.observe_event_loop_lag
        lag_task = asyncio.create_task(observe_lag(observe), name="lag")
        stack.callback(lag_task.cancel)
        pages = _mount_pages(backend, configuration, options) if options.serves_ui else None
        reviewer = await _open_reviewer(backend, stack)
        app = _add_authentication(pages or backend.app, backend, options, certificate, reviewer)
        await stack.enter_async_context(
            serve_http(
                app,
                listener,
                certificate,
                shutdown_timeout=VERBS_SHUTDOWN_SECONDS,
                keep_alive_timeout=VERBS_KEEP_ALIVE_SECONDS,
            )
        )
        if options.diagnostics_serving is not None:
            await stack.enter_async_context(
                _serve_diagnostics(
                    options.diagnostics_serving,
                    HiddenPathsMiddleware(app, frozenset(backend.extender_service.served_paths.values())),
                )
            )
        if pages is not None:
            stack.callback(pages.close)  # otherwise the servers would wait for the streams
        _log_start(options, backend, format_listener_url(listener, secure=certificate is not None))
        return await wait_until_stopped(stopping, backend.main_task) or 0


@contextlib.asynccontextmanager
async def _serve_diagnostics(settings: ServingOptions, app: ASGIApp) -> AsyncIterator[None]:
    """Serve health, metrics and explain over HTTPS inside the block.

    Raises:
        StartError: the port or the certificate cannot be used.
    """
    with open_listening_socket(settings, "--secure-port") as listener:
        certificate = load_certificate(settings)
        refresh = partial(asyncio.to_thread, certificate.refresh)
        reload_task = asyncio.create_task(reload_periodically("certificate of the pages", refresh))
        async with serve_http(app, listener, certificate):
            yield
        reload_task.cancel()


def _make_refresh_functions(
    options: ServeOptions, configuration: ConfigurationFile, certificate: ServingCertificate | None
) -> dict[str, RefreshFunction]:
    """Return the functions that reload the certificate file and the configuration file, by source name."""
    refresh_functions: dict[str, RefreshFunction] = {}
    if certificate is not None:
        refresh_functions["certificate"] = partial(asyncio.to_thread, certificate.refresh)
    if options.config_file:
        refresh_functions["configuration"] = configuration.refresh
    return refresh_functions


def _authenticates(backend: ServeBackend, options: ServeOptions) -> bool:
    """Return whether callers are authenticated: that requires a client CA or an API server."""
    return bool(options.client_ca_file) or backend.credentials is not None


async def _open_reviewer(backend: ServeBackend, stack: contextlib.AsyncExitStack) -> ReviewClient | None:
    if backend.credentials is None:
        return None
    observe = backend.client_metrics.observe_request
    return await stack.enter_async_context(open_review_client(backend.credentials, observe))


def _mount_pages(backend: ServeBackend, configuration: ConfigurationFile, options: ServeOptions) -> MountedPages:
    return mount_extender_pages(
        backend,
        lambda: configuration.setup,
        backend.client_metrics.host or "recorded",
        options.other_scheduler_names,
        authenticated=_authenticates(backend, options),
    )


def _add_authentication(
    app: ASGIApp,
    backend: ServeBackend,
    options: ServeOptions,
    certificate: ServingCertificate | None,
    reviewer: ReviewClient | None,
) -> ASGIApp:
    """Return *app* behind the authentication middleware, or behind a check of Host if nobody can be authenticated."""
    client_cert_verifier = None

    def get_client_cas() -> tuple[x509.Certificate, ...]:
        return () if certificate is None else certificate.client_cas

    verb_paths = frozenset(backend.extender_service.served_paths.values())
    if not _authenticates(backend, options):
        if not options.serving.is_loopback:
            return app
        return HostCheckMiddleware(app, LOOPBACK_HOSTS | {options.serving.address}, verb_paths | _PROBE_PATHS)
    if options.client_ca_file:
        client_cert_verifier = ClientCertVerifier(get_client_cas, options.client_names)
    metrics = backend.client_metrics
    authenticator = Authenticator(AuthenticationOptions(), reviewer, metrics, get_client_ca_file_cas=get_client_cas)
    authorizer = Authorizer(AuthorizationOptions(always_allowed_paths=options.always_allowed_paths), reviewer, metrics)
    return AuthMiddleware(app, authenticator, authorizer, verb_paths, client_cert_verifier)


def _log_start(options: ServeOptions, backend: ServeBackend, address: str) -> None:
    *first_verbs, last_verb = backend.extender_service.served_paths
    verbs = f"{', '.join(first_verbs)} and {last_verb}" if first_verbs else last_verb
    if isinstance(options.cluster, CredentialSource):
        cluster = f"the cluster at {backend.client_metrics.host}"
    elif options.cluster is None:
        cluster = "the nodes of the requests"
    else:
        cache = backend.extender_service.verbs.cache
        cluster = f"{len(cache.names)} nodes with {len(cache.assigned_pods)} pods"
    if not (options.client_ca_file or options.serving.is_loopback):
        log.warning("Every client that can connect to %s may call filter, prioritize and preempt", address)
    for line in options.start_lines:
        log.info("%s", line)
    log.info("Serving %s at %s for %s", verbs, address, cluster, extra={"version": __version__})
