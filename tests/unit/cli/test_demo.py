"""The command `extender demo`: plugins print to standard error, and the console to standard output."""

import logging
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from extender.cli import demo

pytestmark = pytest.mark.usefixtures("logs")


def test_the_print_of_a_plugin_goes_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_demo(_options: Any, console: Console) -> None:
        print("from a plugin")  # noqa: T201 - what a plugin does
        console.print("from the demo")

    monkeypatch.setattr(demo, "run_demo", run_demo)
    result = CliRunner().invoke(demo.app, [])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "from the demo\n", "from a plugin\n")


def test_the_error_of_a_plugin_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_demo(_options: Any, _console: Console) -> None:
        logging.getLogger("extender").info("started")
        logging.getLogger("extender").error("Error scheduling pod", extra={"pod": "a/b", "err": "no plan"})

    monkeypatch.setattr(demo, "run_demo", run_demo)
    (line,) = CliRunner().invoke(demo.app, []).stderr.splitlines()
    assert line.endswith('] "Error scheduling pod" pod="a/b" err="no plan"')


def test_a_missing_temporary_folder_is_not_a_problem_of_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run_demo(_options: Any, _console: Console) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(demo, "run_demo", run_demo)
    result = CliRunner().invoke(demo.app, [])
    message = "extender: [Errno 2] No usable temporary directory found in ['/tmp']\n"
    assert (result.exit_code, result.stderr) == (1, message)


def test_no_browser_without_pages_is_an_error() -> None:
    result = CliRunner().invoke(demo.app, ["--no-browser"])
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "Error: Invalid value for --no-browser: needs --ui",
    )
