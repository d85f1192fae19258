"""Configures pytest-xdist: the number of processes, the tests that share one, and their order.

All tests of a file run in one process, one after another, so that a fixture of the module runs once. A process starts
a control plane when it gets the first file that needs one, and uses it for all such files that it gets.
"""

import os
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

MOST_PROCESSES: Final = 9
"""Each may run a control plane, which takes about 700 MB of memory."""

IMAGE: Final = "tests/image/"
"""The files of this folder run in one process, because they share the image, and building it takes a minute."""

FIRST: Final = (
    IMAGE,
    "tests/controlplane/test_extender_failures.py",
    "tests/controlplane/test_failover.py",
    "tests/controlplane/test_lost_watch.py",
    "tests/controlplane/test_same_decisions.py",
    "tests/controlplane/test_chart_rbac.py",
    "tests/history/",
    "tests/controlplane/",
    "tests/faults/",
    "tests/flows/",
    "tests/chart/",
    "tests/ui/",
    "tests/parity/",
    "tests/properties/",
    "tests/oracle/",
    "tests/test_house_rules.py",
    "tests/test_vocabulary.py",
    "tests/test_lock.py",
    "tests/test_parallel.py",
    "tests/unit/client/",
)
"""Files and folders in the order in which they run; all others run after them.

The files that take longest run first, so that all processes end at about the same time. The tests of the image and of
the control plane wait for other programs for half of their time, and another process uses the core meanwhile.
"""


def file_of(test: str) -> str:
    """The path of the file that contains a test, from the id of the test."""
    return test.partition("::")[0]


def rank(test: str) -> int:
    """The position of a test in the order, from its id; tests with the same rank keep the order of collection."""
    file = file_of(test)
    return next((position for position, start in enumerate(FIRST) if file.startswith(start)), len(FIRST))


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each process whole files, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        return IMAGE if file.startswith(IMAGE) else file

    def remove_node(self, node: Any) -> str | None:
        """Return the test during which a process ended; the other tests of the process run in another one.

        Without this, pytest-xdist runs that test again, in each replacement of the process, for ever if it hangs.
        """
        units = self.assigned_work[node].values()
        crashed = next((test for unit in units for test, completed in unit.items() if not completed), None)
        for unit in units:
            if crashed in unit:
                unit[crashed] = True
        super().remove_node(node)
        return crashed


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of cores plus one, because many tests wait for other programs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores + 1, MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Return the scheduler for every value of `--dist`."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests if several processes run them; a single process keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))
