"""Leaders that are killed, terminated, disconnected or paused while a standby runs: no history breaks a rule."""

from typing import Final

from tests.controlplane.control_plane import ControlPlane
from tests.history.checked_run import check_history

FAULT_NAMES: Final = ("leader-kill", "leader-terminate", "leader-stall", "leader-pause")


def test_no_history_with_a_leader_fault_breaks_a_rule(history_plane: ControlPlane, fault: str, seed: int) -> None:
    check_history(history_plane, fault, seed)
