"""Connections that break and responses that are errors or are lost: no history breaks a rule."""

from typing import Final

from tests.controlplane.control_plane import ControlPlane
from tests.history.checked_run import check_history

FAULT_NAMES: Final = (
    "connection-reset",
    "connection-stall",
    "unauthorized",
    "forbidden",
    "unavailable",
    "lost-binding-response",
)


def test_no_history_with_a_connection_fault_breaks_a_rule(history_plane: ControlPlane, fault: str, seed: int) -> None:
    check_history(history_plane, fault, seed)
