"""The files of the plugin page form a package, and its commands print the output that the page shows."""

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
    """The package of the page: each titled block is a file."""
    folder = tmp_path_factory.mktemp("page")
    for block in BLOCKS:
        if block["title"]:
            path = folder / block["title"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"])
    return folder


def run(command: str, folder: Path) -> str:
    """Run a command of the page and return its output; packages are installed into a folder of the test."""
    words = command.split()
    extender = shutil.which("extender", path=str(Path(sys.executable).parent)) or "extender"
    if words[0] == "pip":
        offline = ["--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation"]
        words = [sys.executable, "-m", "pip", *words[1:], *offline, "--target", str(folder / "site")]
    else:
        words = [{"extender": extender, "python": sys.executable}[words[0]], *words[1:]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder / "site"), str(ROOT)))}
    process = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, f"{command}\n{process.stdout}\n{process.stderr}"
    return process.stdout


def test_every_block_is_a_file_or_commands() -> None:
    untitled = [block for block in BLOCKS if not block["title"] and block["kind"] != "console"]
    assert untitled == []
    assert len(BLOCKS) == PAGE.count("\n```") / 2
    assert sum(block["kind"] == "python" for block in BLOCKS) >= 6


# A line of the page that ends with dots is the beginning of the printed one.
def test_the_commands_run_and_print_what_the_page_shows(package: Path) -> None:
    for block in BLOCKS:
        if block["kind"] != "console":
            continue
        printed: list[str] = []
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                printed = run(line[2:], package).splitlines()
            else:
                prefix = line.removesuffix("...")
                is_printed = line in printed if prefix == line else any(text.startswith(prefix) for text in printed)
                assert is_printed, f"{line!r} is not among\n" + "\n".join(printed)


def test_the_image_of_the_page_has_the_package_in_an_environment_without_pip(package: Path, tmp_path: Path) -> None:
    """The Dockerfile of extender removes pip from `/opt/extender`; the pip of the base image installs there."""
    assert "-m pip uninstall --yes pip" in (ROOT / "Dockerfile").read_text()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "wheel", "--quiet", *offline, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(package)],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "extender")], check=True)
    (command,) = re.findall(r"^RUN pip (.*)$", (package / "Dockerfile").read_text(), re.MULTILINE)
    words = command.replace("/opt/extender", str(tmp_path / "extender")).replace("/source", str(wheel)).split()
    subprocess.run([*pip, *words, *offline], check=True)
    assert list((tmp_path / "extender" / "lib").glob("python3*/site-packages/price_plugins/affordable.py"))
