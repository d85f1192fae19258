"""What a process that serves has at its door: the port, the certificate, and the signals that end it."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator

from extender.web.certificates import CertificateError, ServingCertificate, serving_certificate
from extender.web.serving import listening
from extender.web.settings import Serving

log = logging.getLogger("extender.process")


class StartError(Exception):
    """The process cannot begin its work; one line."""


@contextlib.contextmanager
def port_of(settings: Serving, flag: str) -> Iterator[socket.socket]:
    """The port is ours for as long as the block lasts; *flag* is what chooses another.

    Raises:
        StartError: it is somebody else's, or there is no such address.
    """
    where = f"[{settings.address}]" if ":" in settings.address else settings.address
    try:
        listener = listening(settings.address, settings.port, share_port=settings.share_port)
    except OSError as fault:
        raise StartError(f"failed to listen on {where}:{settings.port}: {_told(fault, flag)}") from fault
    with listener:
        yield listener


def _told(fault: OSError, flag: str) -> str:
    """What keeps us from listening, in the system's words, and the way out where there is one."""
    if isinstance(fault, socket.gaierror) or not fault.errno:
        return f"{fault.strerror or fault}; want an address of this machine"
    words = os.strerror(fault.errno).lower()
    return f"{words}; choose another with {flag}" if fault.errno == errno.EADDRINUSE else words


def certificate_of(settings: Serving, clients: str = "") -> ServingCertificate:
    """What the service shows; *clients* is a file of authorities that vouch for callers, or empty.

    Raises:
        StartError: a file or setting cannot be used.
    """
    try:
        return serving_certificate(settings, clients)
    except CertificateError as fault:
        raise StartError(str(fault)) from fault


@contextlib.contextmanager
def signals(stop: Callable[[], None], dump: Callable[[], None] | None = None) -> Iterator[None]:
    """TERM and INT call *stop*, a second one ends the process at once; USR2 calls *dump*."""
    loop = asyncio.get_running_loop()
    told = False

    def heard() -> None:
        nonlocal told
        if told:
            os._exit(1)
        told = True
        log.info("Told to stop; finishing what was begun")
        stop()

    handlers = {signal.SIGTERM: heard, signal.SIGINT: heard}
    if dump is not None:
        handlers[signal.SIGUSR2] = dump
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
