"""The start of the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def run_with_signal(
    folder: Path, program: str, number: signal.Signals = signal.SIGINT
) -> subprocess.CompletedProcess[str]:
    """Run *program*. The module `typer` in *folder*, which all commands import, sends it the signal *number*."""
    (folder / "typer.py").write_text(f"import signal\nsignal.raise_signal({number:d})\nprint('still runs')\n")
    return subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), *sys.path))},
    )


@pytest.mark.parametrize("module", ["extender", "kubectl"])
def test_ctrl_c_during_the_imports_ends_the_process_without_a_traceback(tmp_path: Path, module: str) -> None:
    function = "run" if module == "extender" else "run_kubectl_plugin"
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"from extender import __main__; __main__.{function}()"
    )
    process = run_with_signal(tmp_path, program)
    assert (process.returncode, process.stdout, process.stderr) == (-signal.SIGINT, "", "")


def test_an_ignored_ctrl_c_stays_ignored(tmp_path: Path) -> None:
    """A shell starts a background job so."""
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nfrom extender import __main__; __main__.run()"
    )
    process = run_with_signal(tmp_path, program)
    assert process.stdout == "still runs\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_ends_the_first_process_of_a_container(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The kernel ignores signals to this process that have no handler."""
    program = (
        "import os, signal; os.getpid = lambda: 1; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from extender import __main__; __main__.run()"
    )
    process = run_with_signal(tmp_path, program, number)
    assert (process.returncode, process.stdout, process.stderr) == (128 + number, "", "")
