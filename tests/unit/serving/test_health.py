"""Health checks and their report."""

import pytest

from extender.serving.health import Health


@pytest.mark.parametrize("endpoint", ["livez", "healthz", "readyz"])
def test_passing_checks_return_ok(endpoint: str) -> None:
    assert Health().run_checks(endpoint) == (True, "ok")


def test_a_verbose_report_lists_the_checks() -> None:
    health = Health(readiness_checks={"cluster": lambda: ""})
    assert health.run_checks("readyz", verbose=True) == (
        True,
        "[+]ping ok\n[+]cluster ok\n[+]shutdown ok\nreadyz check passed\n",
    )


def test_a_failed_check_is_reported_without_verbose() -> None:
    health = Health(readiness_checks={"cluster": lambda: "not loaded"})
    assert health.run_checks("readyz") == (
        False,
        "[+]ping ok\n[-]cluster failed: not loaded\n[+]shutdown ok\nreadyz check failed\n",
    )


def test_an_excluded_check_cannot_fail() -> None:
    health = Health(readiness_checks={"cluster": lambda: "not loaded"})
    assert health.run_checks("readyz", exclude=["cluster"]) == (True, "ok")


def test_a_draining_process_is_alive_and_not_ready() -> None:
    health = Health(draining=True)
    assert health.run_checks("livez") == (True, "ok")
    assert health.run_checks("readyz")[0] is False
