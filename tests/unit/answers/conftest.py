"""The command `extender`, as in the tests of the command line."""

from tests.unit.cli.conftest import extender

__all__ = ["extender"]
