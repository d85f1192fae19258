"""The page on plugins tells the truth: its files make a package, its commands run and print what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text()
BLOCK = re.compile(r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(PAGE)]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the page, written out as its blocks are titled."""
    folder = tmp_path_factory.mktemp("page")
    for block in BLOCKS:
        if block["title"]:
            path = folder / block["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"])
    return folder


def run(command: str, folder: Path) -> str:
    """What a command of the page prints; packages go into a folder of the test's own."""
    words = command.split()
    extender = shutil.which("extender", path=str(Path(sys.executable).parent)) or "extender"
    if words[0] == "pip":
        offline = ["--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
        words = [sys.executable, "-m", "pip", *words[1:], *offline, "--target", str(folder / "site")]
    else:
        words = [{"extender": extender, "python": sys.executable}[words[0]], *words[1:]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "site"), str(ROOT)))}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_block_is_a_file_or_commands() -> None:
    odd = [block for block in BLOCKS if not block["title"] and block["kind"] != "console"]
    assert odd == []
    assert len(BLOCKS) == PAGE.count("\n```") / 2
    assert sum(block["kind"] == "python" for block in BLOCKS) >= 6


# A shown line that ends in dots stands for a longer one.
def test_the_commands_run_and_print_what_the_page_shows(package: Path) -> None:
    for block in BLOCKS:
        if block["kind"] != "console":
            continue
        printed: list[str] = []
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                printed = run(line[2:], package).splitlines()
            else:
                begin = line.removesuffix("...")
                shown = line in printed if begin == line else any(each.startswith(begin) for each in printed)
                assert shown, f"{line!r} is not among\n" + "\n".join(printed)
