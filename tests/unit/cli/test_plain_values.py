"""Plain values of options are converted without Typer's own converter, all others with it."""

import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from extender.cli.plain_values import set_plain_converters

ROOT = Path(__file__).resolve().parents[3]


class Color(Enum):
    RED = "red"
    BLUE = "blue"


def run(*arguments: str) -> dict[str, Any]:
    """Run a command with parameters of all types, and return their values."""
    app = typer.Typer(add_completion=False)
    received: dict[str, Any] = {}

    @app.command()
    def command(
        names: Annotated[list[str] | None, typer.Argument()] = None,
        text: str = "",
        number: int = 0,
        limited: Annotated[int, typer.Option(min=1, max=9)] = 5,
        share: float = 0.5,
        color: Color = Color.RED,
        flag: Annotated[bool, typer.Option("--flag")] = False,
        many: Annotated[list[str] | None, typer.Option()] = None,
    ) -> None:
        received.update(names=names, text=text, number=number, limited=limited, share=share, color=color)
        received.update(flag=flag, many=many)

    compiled = get_command(app)
    set_plain_converters(compiled)
    compiled(list(arguments), standalone_mode=False)
    return received


def test_the_defaults() -> None:
    values = run()
    assert values.pop("names") in (None, [])
    assert values.pop("many") in (None, [])
    assert values == {
        "text": "", "number": 0, "limited": 5, "share": 0.5, "color": Color.RED, "flag": False,
    }  # fmt: skip


def test_values_of_all_types() -> None:
    numbers = ("--number", "-007", "--limited", "9", "--share", "1e-3")
    assert run("a", "b", "--text", "x", *numbers, "--color", "blue", "--flag", "--many", "c", "--many", "d") == {
        "names": ["a", "b"], "text": "x", "number": -7, "limited": 9, "share": 0.001, "color": Color.BLUE,
        "flag": True, "many": ["c", "d"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--number", "x"), "Input should be a valid integer, unable to parse string as an integer"),
        (("--color", "green"), "Value error, 'green' is not one of 'red', 'blue'."),
        (("--limited", "10"), "Input should be less than or equal to 9"),
        (("--share", "half"), "Input should be a valid number, unable to parse string as a number"),
    ],
    ids=["a number", "a choice", "a limit", "a fraction"],
)
def test_invalid_values_have_the_messages_of_typer(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(typer.BadParameter) as error:
        run(*arguments)
    assert error.value.message == message


HEAVY_MODULES = {
    "--version": ("numpy", "yaml", "pydantic", "extender.app", "extender.plugins", "asyncio"),
    "explain": (
        "pydantic", "fastapi", "starlette", "uvicorn", "aiohttp", "asyncio", "kubernetes", "cryptography", "rich",
        "prometheus_client", "celpy", "extender.client.transport", "extender.scheduler", "extender.fake_apiserver",
    ),
}  # fmt: skip
"""Modules that the commands need not import. Each of them takes some hundredths of a second or more."""

CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: one}, status: {allocatable: {cpu: "4", pods: "110"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, resources: {requests: {cpu: "9"}}}]}}
"""

PROGRAM = """
import sys
from extender.cli.main import main
try:
    main()
except SystemExit as error:
    assert not error.code
print("modules:", *sorted(sys.modules))
"""


@pytest.mark.parametrize("command", HEAVY_MODULES)
def test_a_command_does_not_import_heavy_modules(command: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    arguments = [command, "-f", "cluster.yaml"] if command == "explain" else [command]
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    modules = process.stdout.rpartition("modules: ")[2].split()
    assert "extender.cli.main" in modules
    assert [name for name in HEAVY_MODULES[command] if name in modules] == []
