"""Run calls on the workers of a Dask cluster. The package distributed is optional."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final

import typer

_FLAG: Final = "--scheduler-address"
_CONNECT_TIMEOUT_SECONDS: Final = 10


@contextmanager
def open_dask_executor(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to the Dask scheduler at *address*, such as `tcp://127.0.0.1:8786`; disconnect at the end of the block.

    Yields:
        An executor that runs calls on the workers, and the number of worker processes, at least 1.

    Raises:
        BadParameter: distributed is not installed, no scheduler answers within ten seconds, or it has no worker.
    """
    try:
        from distributed import Client  # noqa: PLC0415 (optional, and its import takes a second)
        from distributed.comm.addressing import get_address_host_port  # noqa: PLC0415
    except ImportError as error:
        raise typer.BadParameter(
            "needs the package distributed; install it with pip install 'kube-scheduler-extender[dask]'",
            param_hint=_FLAG,
        ) from error
    try:
        # A client with an invalid address fails only after its construction, and prints a traceback when it is deleted.
        get_address_host_port(address, strict=True)
    except ValueError as error:
        raise typer.BadParameter(
            f"{address!r} is no address of a Dask scheduler; want one such as tcp://10.0.0.7:8786", param_hint=_FLAG
        ) from error
    try:
        client: Any = Client(address, timeout=_CONNECT_TIMEOUT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"no Dask scheduler answers at {address}: {error}", param_hint=_FLAG) from error
    with client:
        worker_count = len(client.scheduler_info(n_workers=-1)["workers"])
        if not worker_count:
            raise typer.BadParameter(f"the Dask scheduler at {address} has no worker", param_hint=_FLAG)
        yield client.get_executor(), worker_count
