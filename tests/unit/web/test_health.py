"""Probes: what is checked, and how it is told."""

import pytest

from extender.web.health import Health


@pytest.mark.parametrize("endpoint", ["livez", "healthz", "readyz"])
def test_all_is_well_in_one_word(endpoint: str) -> None:
    assert Health().report(endpoint) == (True, "ok")


def test_a_verbose_report_lists_the_checks() -> None:
    health = Health(ready={"cluster": lambda: ""})
    assert health.report("readyz", verbose=True) == (
        True,
        "[+]ping ok\n[+]cluster ok\n[+]shutdown ok\nreadyz check passed\n",
    )


def test_a_failed_check_is_told_without_being_asked() -> None:
    health = Health(ready={"cluster": lambda: "not loaded"})
    assert health.report("readyz") == (
        False,
        "[+]ping ok\n[-]cluster failed: not loaded\n[+]shutdown ok\nreadyz check failed\n",
    )


def test_an_excluded_check_cannot_fail() -> None:
    health = Health(ready={"cluster": lambda: "not loaded"})
    assert health.report("readyz", exclude=["cluster"]) == (True, "ok")


def test_a_process_that_drains_is_alive_and_not_ready() -> None:
    health = Health(draining=True)
    assert health.report("livez") == (True, "ok")
    assert health.report("readyz")[0] is False
