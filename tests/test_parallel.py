"""Tests of tests/parallel.py: which tests share a process, their order, and a test that ends its process."""

import subprocess
import sys
from pathlib import Path

from tests.parallel import rank

ROOT = Path(__file__).parents[1]

SUITE = """\
import os
from pathlib import Path

def test_before():
    pass

def test_that_ends_its_process():
    with Path(os.environ["RUNS"]).open("a") as runs:
        runs.write("run\\n")
    os._exit(1)

def test_after():
    pass
"""


def test_a_test_that_ends_its_process_fails_once_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "test_neighbour.py").write_text("def test_neighbour():\n    pass\n")
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "pytest", "-p", "tests.parallel", "-p", "no:cacheprovider"]
    arguments = ["-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "2", "--dist", "loadscope", str(tmp_path)]

    process = subprocess.run(
        [*command, *arguments],
        check=False,
        cwd=ROOT,
        env={"RUNS": str(runs), "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert "1 failed, 3 passed" in process.stdout
    assert "test_suite.py::test_that_ends_its_process" in process.stdout
    assert runs.read_text() == "run\n"


def test_tests_of_the_image_run_first_and_unlisted_tests_last() -> None:
    tests = ["tests/unit/api/test_codec.py::test_a", "tests/ui/test_b.py::test_b", "tests/image/test_image.py::test_c"]

    assert sorted(tests, key=rank) == [tests[2], tests[1], tests[0]]
