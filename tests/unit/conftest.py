"""What unit tests share: logging as it was, whatever a command sets up, and a clock of the event loop's turns."""

import logging
from collections.abc import Iterator

import pytest

from extender.event_loop import turn_budget
from tests.unit.turn_clock import TurnClock


@pytest.fixture
def logs() -> Iterator[None]:
    """Handlers and level of the root logger are put back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def turn_clock(monkeypatch: pytest.MonkeyPatch) -> TurnClock:
    """The clock that decides when a turn of the event loop has lasted long."""
    clock = TurnClock()
    monkeypatch.setattr(turn_budget, "perf_counter", clock)
    return clock
