"""Reload files while the process runs: certificates and the configuration.

Changes are detected by content, not by modification time. Kubernetes updates a mounted ConfigMap or Secret by switching
a symbolic link. An invalid file changes nothing: the old content stays in force. An error is logged once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from extender.app.wiring import SchedulerSetup, load_setup
from extender.basics.input_limits import MAX_CONFIG_BYTES, InputLimitError, read_limited_file
from extender.config.errors import ConfigError
from extender.metrics.process_families import ReloadMetrics
from extender.serving.tls import CertificateError

log = logging.getLogger("extender.app")

CHECK_SECONDS: Final = 10.0
"""Seconds between two checks of a file."""


class ReloadError(Exception):
    """A changed file cannot be used; the message is one line."""


class TemporaryReloadError(ReloadError):
    """A changed file cannot be used now; the next check retries the same content."""


RefreshFunction = Callable[[], Awaitable[bool]]
"""A function that reloads a file and returns whether the file's content changed.

It raises `CertificateError` or `ReloadError` while the content cannot be used.
"""


async def reload_periodically(source: str, refresh: RefreshFunction, metrics: ReloadMetrics | None = None) -> None:
    """Call *refresh* periodically until cancelled; log and count the results.

    *source* is the name of the file in log messages and metrics.
    """
    last_error = ""
    if metrics is not None:
        metrics.register_source(source)
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        error_message, is_changed = "", False
        try:
            is_changed = await refresh()
        except (CertificateError, ReloadError) as error:
            error_message = str(error)
        except Exception as error:
            error_message = repr(error)
            if error_message != last_error:
                log.exception("Unexpected error while the %s was reloaded", source)
        if error_message and error_message != last_error:
            log.warning("The %s cannot be reloaded; the old one stays in force", source, extra={"err": error_message})
        elif not error_message and (is_changed or last_error):
            log.info("The %s was reloaded", source)
        if metrics is not None and (error_message != last_error or is_changed):
            metrics.observe_reload(source, succeeded=not error_message)
        last_error = error_message


@dataclass(slots=True)
class ConfigurationFile:
    """The configuration file.

    Attributes:
        setup: the configuration in force.
        apply_setup: the function that puts a new configuration in force, or raises `ReloadError` and changes nothing.
    """

    file: Path
    setup: SchedulerSetup
    apply_setup: Callable[[SchedulerSetup], Coroutine[Any, Any, None]]
    _last_data: bytes | None = field(init=False, default=None)
    _last_error: ReloadError | None = field(init=False, default=None)

    async def refresh(self) -> bool:
        """Put the content of the file in force; return whether the configuration changed.

        Raises:
            ReloadError: the content cannot be used; the old configuration stays in force.
        """
        try:
            data = await asyncio.to_thread(read_limited_file, self.file, MAX_CONFIG_BYTES)
        except InputLimitError as error:
            raise ReloadError(f"{self.file} {error}") from error
        except OSError as error:
            raise ReloadError(f"open {self.file}: {(error.strerror or str(error)).lower()}") from error
        if data == self._last_data:
            if self._last_error is not None:
                raise self._last_error.with_traceback(None)  # the traceback would grow with each check
            return False
        try:
            is_changed = await self._load(data)
        except TemporaryReloadError:
            raise
        except ReloadError as error:
            self._last_data, self._last_error = data, error
            raise
        self._last_data, self._last_error = data, None
        return is_changed

    async def _load(self, data: bytes) -> bool:
        current = self.setup
        try:  # in a thread, so that the event loop can answer requests meanwhile
            setup = await asyncio.to_thread(
                load_setup, data, str(self.file), current.gates.from_flags, current.profile_set.shared_state
            )
        except ConfigError as error:
            raise ReloadError("; ".join(map(str, error.errors))) from error
        if setup.render_with_defaults() == current.render_with_defaults():
            return False
        await self.apply_setup(setup)
        self.setup = setup
        for warning in setup.warnings:
            log.warning("%s", warning)
        return True
