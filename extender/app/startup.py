"""Startup of a serving process: listening socket, serving certificate, signal handlers."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from extender.serving.http_server import listen, raise_open_file_limit
from extender.serving.serving_options import ServingOptions
from extender.serving.tls import CertificateError, ServingCertificate, load_serving_certificate

log = logging.getLogger("extender.app")

T = TypeVar("T")


MIN_OPEN_FILES: Final = 64
"""Minimum limit of open files: those of the interpreter and the event loop, watches, and some connections."""


class StartError(Exception):
    """The process cannot start; the message is one line."""


def check_open_file_limit() -> None:
    """Raise the limit of open files of this process as far as the system allows, and check it.

    Raises:
        StartError: the limit is too low.
    """
    limit = raise_open_file_limit()
    if limit < MIN_OPEN_FILES:
        raise StartError(f"the limit of open files is {limit}; want {MIN_OPEN_FILES} or more (ulimit -n)")


@contextlib.contextmanager
def open_listening_socket(settings: ServingOptions, flag: str) -> Iterator[socket.socket]:
    """Open a listening socket inside the block; error messages recommend *flag* to select another port.

    Raises:
        StartError: the port is in use, or the address does not exist.
    """
    host = f"[{settings.address}]" if ":" in settings.address else settings.address
    try:
        listener = listen(settings.address, settings.port, reuse_port=settings.reuse_port)
    except OSError as error:
        raise StartError(f"failed to listen on {host}:{settings.port}: {_explain_listen_error(error, flag)}") from error
    with listener:
        yield listener


def _explain_listen_error(error: OSError, flag: str) -> str:
    """Return the system's message, with a suggestion for a used port or an unknown address."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return f"{error.strerror or error}; want an address of this machine"
    message = os.strerror(error.errno).lower()
    return f"{message}; choose another port with {flag}" if error.errno == errno.EADDRINUSE else message


def load_certificate(settings: ServingOptions, client_ca_file: str = "") -> ServingCertificate:
    """Load the serving certificate, and the CAs of client certificates if there is a *client_ca_file*.

    Raises:
        StartError: a file or setting cannot be used.
    """
    try:
        return load_serving_certificate(settings, client_ca_file)
    except CertificateError as error:
        raise StartError(str(error)) from error


@contextlib.contextmanager
def handle_signals(stop: Callable[[], None], dump: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Handle signals inside the block: TERM and INT call *stop*; USR2 calls *dump*, and does not end the process.

    A second TERM or INT ends the process at once.
    """
    loop = asyncio.get_running_loop()
    stop_requested = False

    def on_stop_signal() -> None:
        nonlocal stop_requested
        if stop_requested:
            os._exit(1)
        stop_requested = True
        log.info("Received a stop signal; draining")
        stop()

    handlers = {signal.SIGTERM: on_stop_signal, signal.SIGINT: on_stop_signal, signal.SIGUSR2: dump}
    for signal_number, handler in handlers.items():
        loop.add_signal_handler(signal_number, handler)
    try:
        yield
    finally:
        for signal_number in handlers:
            loop.remove_signal_handler(signal_number)


async def wait_until_stopped(stopping: asyncio.Event, task: asyncio.Task[T] | None) -> T | None:
    """Wait until *stopping* is set, or *task* ends; return its result or raise its exception in the second case."""
    stop_task = asyncio.create_task(stopping.wait())
    await asyncio.wait({stop_task, *filter(None, (task,))}, return_when=asyncio.FIRST_COMPLETED)
    stop_task.cancel()
    return task.result() if task is not None and task.done() else None
