"""The test of one fault and one seed, which the test files share."""

import os
from typing import Final

from tests.controlplane.control_plane import ControlPlane
from tests.history.checker import find_assignments
from tests.history.harness import DEFAULT_SECONDS, run, shrink_operations
from tests.history.replicas import EXTENDER

MIN_BOUND_PODS: Final = 20
"""A run that binds fewer pods tests too little."""


def check_history(plane: ControlPlane, fault: str, seed: int) -> None:
    """Run the workload of *seed* with *fault*, and fail with the shortest history of each broken rule.

    The environment has the parameters: HISTORY_SECONDS, HISTORY_SHRINK (the number of runs with fewer operations
    after a failure), and SCHEDULER (`extender` or `kube-scheduler`).

    kube-scheduler 1.36.3 breaks rules with some faults: it binds to nodes that it cannot watch (unauthorized,
    unavailable), frees a node although a binding was carried out (connection-reset), and binds after the loss of its
    lease (leader-pause).
    """
    program = os.environ.get("SCHEDULER") or EXTENDER
    seconds = float(os.environ.get("HISTORY_SECONDS") or DEFAULT_SECONDS)
    result = run(plane, fault, seed, seconds=seconds, program=program)
    print(f"{program}: {result.summary()}")  # noqa: T201 - `make history` shows it
    if not result.is_correct:
        tries = int(os.environ.get("HISTORY_SHRINK") or 0)
        report = result.report()
        if tries and result.violations:
            smaller = shrink_operations(plane, result, tries, program, seconds)
            steps = "\n".join(map(str, smaller.operations))
            report += f"\n=== with fewer operations\n{steps}\n{smaller.report()}"
        raise AssertionError(report)
    # Not counted in the audit log: an API server that is killed loses its last entries.
    bound = sum(1 for _ in find_assignments(result.history))
    assert bound >= MIN_BOUND_PODS, result.summary()
    assert result.applied
