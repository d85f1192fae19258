"""The harness finds the violations of a scheduler whose rules are disabled."""

from typing import Final

from tests.controlplane.control_plane import ControlPlane
from tests.history.harness import run

DISABLED: Final = ("NodeUnschedulable", "NodeResourcesFit", "NodePorts", "NodeAffinity")
"""Filter plugins; each has a rule of the checker."""


def test_a_scheduler_without_filters_breaks_their_rules(history_plane: ControlPlane) -> None:
    """No taint rule is broken, because its plugin is enabled.

    `node exists` may be reported for a pod that fitted its node at no time if the node was deleted just before.
    """
    result = run(history_plane, "none", 1, seconds=10.0, disabled_filters=DISABLED)
    rules = {violation.rule for violation in result.violations}
    assert rules <= {"unschedulable", "allocatable", "hostPort", "nodeSelector", "nodeAffinity", "node exists"}, (
        result.report()
    )
    assert "allocatable" in rules
    assert len(rules) >= 3, result.summary()
    assert "--- shortest history of allocatable: " in result.report()
