"""A release: one version everywhere, a changelog that can be made, workflows that run what everybody runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import extender

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKE = re.compile(r"(?m)^\s*(?:[A-Z_]+=\S+ )*make(?: PYTHON=\S+)?((?: [a-z-]+)+)$")


def chart() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "chart" / "Chart.yaml").read_text()))


def test_there_is_one_version() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert pyproject["project"]["dynamic"] == ["version"]
    assert pyproject["tool"]["hatch"]["version"]["path"] == "extender/__init__.py"
    assert (chart()["version"], chart()["appVersion"]) == (extender.__version__,) * 2
    page = (ROOT / "docs" / "start" / "helm.md").read_text()
    assert set(re.findall(r"kube-scheduler-extender:(\d+\.\d+\.\d+)", page)) == {extender.__version__}


def test_the_changelog_can_be_made_of_the_fragments() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--date", "2026-01-02"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"## {extender.__version__} (2026-01-02)" in done.stdout
    fragments = [path.name for path in (ROOT / "docs" / "changelog.d").glob("*.md")]
    assert len(re.findall(r"(?m)^- ", done.stdout)) == len(fragments)


@pytest.mark.parametrize("file", WORKFLOWS, ids=[file.name for file in WORKFLOWS])
def test_actions_are_pinned_by_commit_with_their_version_beside(file: Path) -> None:
    used = re.findall(r"uses: (.+)", file.read_text())
    assert used
    assert [use for use in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_workflows_run_targets_that_exist() -> None:
    existing = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    texts = [file.read_text().replace("- run: ", "") for file in WORKFLOWS]
    run = {target for text in texts for found in MAKE.findall(text) for target in found.split()}
    matrix = yaml.safe_load(WORKFLOWS[0].read_text())["jobs"]["target"]["strategy"]["matrix"]["target"]
    assert {"check", "demo", "test", "test-build"} <= run | set(matrix)
    assert (run | set(matrix)) - existing == set()


def test_ci_runs_all_that_the_script_runs() -> None:
    here = {target for found in MAKE.findall((ROOT / ".ci" / "run").read_text()) for target in found.split()}
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    # The programs that these build are built by the targets that need them.
    assert {target for target in here - {"control-plane", "helm"} if not re.search(rf"\b{target}\b", ci)} == set()
    assert {"check", "demo", "test", "docs", "scan", "test-build"} <= here


def test_every_exception_of_the_scans_has_its_reason() -> None:
    text = (ROOT / ".scan" / "checkov.yaml").read_text()
    explained = re.findall(r"(?m)(?:^  # .+\n)+^  - (CKV\w+)$", text)
    assert explained == yaml.safe_load(text)["skip-check"]
