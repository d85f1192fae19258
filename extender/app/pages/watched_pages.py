"""Pages that follow a live cluster which this process only watches: `extender ui` without a file."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from extender.analysis.input.input_errors import UnreadableError
from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.app.cluster_reader import ReadProgress, make_credentials_error
from extender.app.informers import Informers
from extender.app.live_cluster import LiveCluster
from extender.app.pages.ui_pages import make_access, make_live_pages
from extender.app.wiring import SchedulerSetup
from extender.basics.clock import SystemClock
from extender.client.errors import CredentialsError
from extender.client.kubeconfig import CredentialSource
from extender.cycle.plugin_runtime import PluginRuntime
from extender.ui.mounted_pages import OpenPages
from extender.ui.page_source import PageSource

_REQUIRED_KINDS: Final = (Node, Pod)
"""Without these kinds there is nothing to show. All others may be forbidden, or unknown to the API server."""

_SYNC_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


@contextlib.asynccontextmanager
async def open_watched_pages(
    setup: SchedulerSetup,
    credential_source: CredentialSource,
    command_options: str,
    make_runtime: Callable[[], PluginRuntime],
    progress: ReadProgress,
) -> AsyncIterator[OpenPages]:
    """List the cluster, and watch it inside the block. Nothing is written to it.

    *command_options* select the same cluster and configuration on the command line; *progress* is called after each
    kind.

    Raises:
        UnreadableError: nodes or pods cannot be read; the message names the server and the reason.
    """
    clock = SystemClock()
    cluster = LiveCluster(setup, credential_source, clock, observe=lambda _: None)
    informers = cluster.informers
    for kind, reflector in informers.reflectors.items():
        reflector.is_optional = kind not in _REQUIRED_KINDS
    watches = asyncio.create_task(informers.run(), name="informers")

    access = make_access(informers, clock, command_options)
    try:
        server = await _connect(cluster)
        await _wait_until_listed(informers, server, progress)
        source = PageSource(server, cluster.cache, lambda: setup.profiles, make_runtime, time.monotonic, access)
        app, close = make_live_pages(source, lambda: setup, delays_decisions=False)
        yield OpenPages(app, close, access.list_problems, watches)
    finally:
        watches.cancel()
        await asyncio.gather(watches, return_exceptions=True)
        await cluster.close()


async def _connect(cluster: LiveCluster) -> str:
    """Return the address of the API server."""
    try:
        return await cluster.credentials.get_server()
    except CredentialsError as error:
        raise make_credentials_error(error) from error


async def _wait_until_listed(informers: Informers, server: str, progress: ReadProgress) -> None:
    """Wait until every kind is listed or forbidden. A kind that fails for a minute otherwise is left for later."""
    reflectors, deadline = informers.reflectors, time.monotonic() + _SYNC_SECONDS
    while True:
        for kind in _REQUIRED_KINDS:
            reflector = reflectors[kind]
            if reflector.last_error and not reflector.synced.is_set():
                hint = (
                    '; grant the verbs "list" and "watch" on nodes and pods in all namespaces, '
                    "or use a recording with -f"
                )
                raise UnreadableError(server, reflector.last_error + (hint if reflector.forbidden else ""))
        waiting = sum(not (reflector.synced.is_set() or reflector.forbidden) for reflector in reflectors.values())
        progress(len(reflectors) - waiting, len(reflectors))
        required_are_listed = all(reflectors[kind].synced.is_set() for kind in _REQUIRED_KINDS)
        if required_are_listed and (not waiting or time.monotonic() > deadline):
            return
        await asyncio.sleep(_POLL_SECONDS)
