"""Start the command line, also for `python -m extender`.

Until the modules of the command line are imported, Ctrl-C ends the process without a traceback.
"""

import signal
from collections.abc import Callable
from importlib import import_module


def run() -> None:
    """Run `extender`."""
    _import_main("extender.cli.main")()


def run_kubectl_plugin() -> None:
    """Run `kubectl placement`."""
    _import_main("extender.cli.live.kubectl_plugin")()


def _import_main(module: str) -> Callable[[], None]:
    """Import *module* and return its function `main`.

    Meanwhile SIGINT has its default action: the process is killed, which a shell reports as exit status 130.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not ignored, as in a background job
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    main: Callable[[], None] = import_module(module).main
    signal.signal(signal.SIGINT, handler)
    return main


if __name__ == "__main__":
    run()
