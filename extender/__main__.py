"""Start the command line, also for `python -m extender`.

Until the modules of the command line are imported, Ctrl-C ends the process without a traceback. SIGTERM ends also the
first process of a container, for which the kernel ignores signals without a handler.
"""

import os
import signal
from collections.abc import Callable
from importlib import import_module
from types import FrameType

_FIRST_PID = 1
"""The process id of the first process of a container."""


def run() -> None:
    """Run `extender`."""
    _import_main("extender.cli.main")()


def run_kubectl_plugin() -> None:
    """Run `kubectl placement`."""
    _import_main("extender.cli.live.kubectl_plugin")()


def _import_main(module: str) -> Callable[[], None]:
    """Import *module* and return its function `main`.

    Meanwhile SIGINT has its default action: the process is killed, which a shell reports as exit status 130. SIGTERM
    always has its default action, unless a command handles it.
    """
    default_action: Callable[[int, FrameType | None], None] | signal.Handlers = signal.SIG_DFL
    if os.getpid() == _FIRST_PID:
        default_action = _exit_by_signal
        signal.signal(signal.SIGTERM, default_action)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not ignored, as in a background job
        signal.signal(signal.SIGINT, default_action)
    main: Callable[[], None] = import_module(module).main
    signal.signal(signal.SIGINT, handler)
    return main


def _exit_by_signal(signal_number: int, _: FrameType | None) -> None:
    """End the process with the exit status that a shell reports for one that a signal killed."""
    os._exit(128 + signal_number)


if __name__ == "__main__":
    run()
