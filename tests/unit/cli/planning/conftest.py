"""The command `extender`, run in this process, as for the other commands."""

from tests.unit.cli.conftest import extender

__all__ = ["extender"]
