"""What unit tests share: logging as it was, whatever a command sets up."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def logs() -> Iterator[None]:
    """Handlers and level of the root logger are put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
