"""The command `extender`: output streams and exit status."""

import errno
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from extender import __version__
from extender.cli.main import COMMANDS
from extender.cli.recording_options import read_inputs

NODE = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"pods":"10"}}}'
POD = (
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default"},'
    '"spec":{"containers":[{"name":"a"}]}}'
)


Command = Callable[..., tuple[int, str, str]]


def test_the_version_is_shown(extender: Command) -> None:
    assert extender("--version") == (0, f"extender {__version__}\n", "")


def test_the_help_lists_every_command_and_an_example(extender: Command) -> None:
    status, out, _ = extender("--help")
    assert status == 0
    assert all(f"\n  {name} " in out for name in ("explain", "simulate", "serve", "config"))
    assert "\n    extender explain -f cluster.json.gz shop/api-7f4b-g3ypl\n" in out


@pytest.mark.parametrize(
    ("arguments", "example"),
    [
        (("explain",), "extender record -o - | extender explain -f -"),
        (("simulate",), "extender simulate -f cluster.json -f more-nodes.yaml"),
        (("config", "check"), "extender config check --show scheduler.yaml"),
        (("config", "defaults"), "extender config defaults > scheduler.yaml"),
        (("config", "convert"), "extender config convert policy.json > scheduler.yaml"),
        (("serve",), "extender serve -f cluster.json"),
    ],
)
def test_the_help_of_each_command_has_examples(extender: Command, arguments: tuple[str, ...], example: str) -> None:
    status, out, _ = extender(*arguments, "--help")
    assert status == 0
    assert example in out
    assert "[[" not in out
    assert "completion" not in out


@pytest.mark.parametrize(
    ("arguments", "usage", "argument"),
    [
        ("explain", "extender explain [OPTIONS] [POD]...", "POD  name, namespace/name, pod/name"),
        ("config check", "extender config check [OPTIONS] FILE", "FILE  YAML or JSON;"),
        ("completion", "extender completion [OPTIONS] {bash|zsh|fish}", "{bash|zsh|fish}  The shell."),
    ],
)
def test_the_help_has_the_names_of_arguments_without_types(
    extender: Command, arguments: str, usage: str, argument: str
) -> None:
    out = extender(*arguments.split(), "--help")[1]
    assert out.startswith(f"Usage: {usage}\n")
    assert f"\nArguments:\n  {argument}" in out


def test_a_short_option_takes_its_value_after_an_equals_sign_as_in_kubectl(extender: Command) -> None:
    spaced = extender("explain", "-f", "-", "-n", "default", "-o", "yaml", stdin=f"{NODE}\n---\n{POD}")
    assert spaced[0] == 0
    assert spaced[1].startswith("kind: Explanation\n")
    assert extender("explain", "-f=-", "-n=default", "-o=yaml", stdin=f"{NODE}\n---\n{POD}") == spaced


@pytest.mark.parametrize("command", [*sorted(COMMANDS), "config check", "config convert", "config defaults"])
def test_the_help_fits_80_columns(extender: Command, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """The terminal would break a longer line within a word. The kinds in the command for kubectl are one word."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = extender(*command.split(), "--help")[1].splitlines()
    assert [line for line in lines if len(line) > 80 and "kubectl get nodes,pods" not in line] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("what-if", "Add the nodes in a file: YAML or JSON."),
        ("what-if", "Add the pods in a file: YAML or JSON."),
        ("experiment", "YAML or JSON, plain or gzipped. docs/science.md converts the CSV files of a trace."),
    ],
)
def test_the_help_names_the_formats_of_a_file(extender: Command, command: str, words: str) -> None:
    assert words in " ".join(extender(command, "--help")[1].split())


def test_a_long_example_is_continued_before_an_option_as_the_shell_reads_it(
    extender: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    first_line = "    extender what-if -f cluster.json --sweep scenarios.yaml \\\n"
    example = f"{first_line}        --results results.jsonl --jobs 0\n"
    assert example in extender("what-if", "--help")[1]
    monkeypatch.setenv("COLUMNS", "120")
    assert example.replace("\\\n        ", "") in extender("what-if", "--help")[1]


@pytest.mark.parametrize("command", [*sorted(COMMANDS), "config check", "config convert", "config defaults"])
def test_the_comments_of_examples_are_below_them_on_a_narrow_terminal(
    extender: Command, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = extender(*command.split(), "--help")[1].splitlines()
    assert [line for line in lines if re.match(r" *(extender|kubectl) .* {2,}\S", line) and len(line) > 80] == []


def test_the_comments_of_examples_are_beside_them_on_a_wide_terminal(
    extender: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns, separator in (("80", "\n        "), ("120", " " * 43)):
        monkeypatch.setenv("COLUMNS", columns)
        example = f"    extender explain -A{separator}all pending pods of the live cluster\n"
        assert example in extender("explain", "--help")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing command"),
        (("frobnicate",), "No such command 'frobnicate'"),
        (("simulat",), "No such command 'simulat'. Did you mean 'simulate'?"),
        (("version",), "No such command 'version'. Did you mean '--version'?"),
        (("help",), "No such command 'help'. Did you mean '--help'?"),
        (("record",), "Missing option '--output' / '-o'"),
        (("explain", "-f", "x", "--colour"), "No such option: --colour"),
        (("explain", "-f", "x", "-o", "xml"), "'-o': 'xml' is not one of 'table', 'json', 'yaml'"),
        (("simulate", "-f", "x", "--seed", "y"), "Invalid value for '--seed'"),
        (("config", "check"), "Missing argument 'FILE'"),
        (("simulate", "x"), "Got unexpected extra argument(s) (x)\n"),
        (("what-if", "--drain", "a", "b c"), "(b c); repeat the option: --drain a --drain 'b c'\n"),
        (("what-if", "--drain=a", "b", "c", "--preempt"), "; repeat the option: --drain a --drain b --drain c\n"),
        (("what-if", "--drain", "a", "b\n"), "(b\\x0a)\n"),
    ],
    ids=[
        "nothing",
        "a command",
        "a misspelt command",
        "the command version",
        "the command help",
        "no file",
        "an option",
        "an output",
        "a seed",
        "no configuration",
        "an argument",
        "two values of an option",
        "three values of an option after an equals sign",
        "a line break",
    ],
)
def test_an_invalid_command_line_is_one_message_and_status_2(
    extender: Command, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = extender(*arguments)
    assert status == 2
    assert message in out + err
    assert "Traceback" not in err


def test_every_input_error_is_one_line_on_standard_error_and_status_2(extender: Command) -> None:
    text = "apiVersion: v1\nkind: Node\nmetadata: {}\n---\n7\n"
    assert extender("explain", "-f", "-", stdin=text) == (
        2,
        "",
        "extender: stdin: line 1: Node: metadata.name: is missing; every object needs a name\n"
        "extender: stdin: line 5: is a number; want a Kubernetes object or a List of them, with apiVersion and kind\n",
    )


def test_skipped_kinds_are_listed_on_standard_error(extender: Command) -> None:
    status, _, err = extender("simulate", "-f", "-", stdin=f"{NODE}\n" + '{"apiVersion":"v1","kind":"Secret"}\n' * 2)
    assert status == 0
    assert err == "extender: skipped kinds that scheduling does not read: 2 Secret\n"


@pytest.mark.parametrize(
    ("raised", "line"),
    [
        (RuntimeError("the moon"), "extender: internal error: RuntimeError: the moon\n"),
        (GeneratorExit("closed"), "extender: internal error: GeneratorExit: closed\n"),
        (OSError(errno.ENOSPC, "No space left on device"), "extender: No space left on device\n"),
        (OSError(errno.EIO, "Input/output error", "f"), "extender: f: Input/output error\n"),
    ],
    ids=["a bug", "no error", "an OS error", "an OS error with a file"],
)
def test_any_other_exception_is_one_line_and_status_1(
    extender: Command, monkeypatch: pytest.MonkeyPatch, raised: BaseException, line: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(sys.modules[read_inputs.__module__], "read_recording", fail)
    assert extender("simulate", "-f", "x") == (1, "", line)


@pytest.mark.parametrize(
    ("raised", "status"), [(KeyboardInterrupt(), 130), (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1)]
)
def test_an_interrupt_and_a_closed_pipe_end_the_command_without_a_message(
    extender: Command, monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(sys.modules[read_inputs.__module__], "read_recording", fail)
    streams = sys.stdout, sys.stderr
    code, out, err = extender("simulate", "-f", "x")
    sys.stdout, sys.stderr = streams
    assert (code, out, err.strip()) == (status, "", "")


class _Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_progress_bar_that_is_erased_at_the_end(
    extender: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = "".join(POD.replace('"name":"a","namespace"', f'"name":"p{i}","namespace"') + "\n" for i in range(4))
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    status, _, _ = extender("simulate", "-f", "-", stdin=NODE + pods)
    assert status == 0
    assert terminal.getvalue() == (
        "\r[#######.......................]  25% 1 of 4 pods"
        "\r[###############...............]  50% 2 of 4 pods"
        "\r[######################........]  75% 3 of 4 pods"
        "\r\x1b[K"
    )


def test_the_import_of_a_command_leaves_the_garbage_collector_enabled_and_its_objects_frozen() -> None:
    program = (
        "import gc, sys; from extender.cli.main import main; sys.argv = ['extender', 'explain', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.endswith("\nTrue True\n")


@pytest.mark.parametrize(
    ("closed", "status", "out"),
    [(">&-", 0, ""), ("2>&-", 0, "Pod default/a\n"), ("<&-", 0, "Pod default/a\n")],
    ids=["output", "errors", "input"],
)
def test_a_closed_stream_is_no_error(tmp_path: Path, closed: str, status: int, out: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{NODE}\n---\n{POD}\n")
    command = f"{shlex.join([sys.executable, '-m', 'extender', 'explain', '-f', str(file)])} {closed}"
    process = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout[: len(out)], process.stderr) == (status, out, "")
