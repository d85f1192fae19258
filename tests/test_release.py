"""A release: one version, a changelog, and workflows that run the targets of the Makefile."""

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
MAKE_LINE = re.compile(
    r"(?m)^\s*(?:[A-Z_]+=\S+ )*(?:nice -n \d+ )?make(?: PYTHON=\S+)?((?: [a-z-]+)+)(?: (?:\d?>|\|\|).*)?$"
)
"""A line that runs targets of the Makefile, with an optional redirection or alternative command."""


def load_chart() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "chart" / "Chart.yaml").read_text()))


def test_there_is_one_version() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert pyproject["project"]["dynamic"] == ["version"]
    assert pyproject["tool"]["hatch"]["version"]["path"] == "extender/__init__.py"
    assert (load_chart()["version"], load_chart()["appVersion"]) == (extender.__version__,) * 2
    page = (ROOT / "docs" / "start" / "helm.md").read_text()
    assert set(re.findall(r"kube-scheduler-extender:(\d+\.\d+\.\d+)", page)) == {extender.__version__}


def test_the_changelog_is_built_from_the_fragments() -> None:
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--date", "2026-01-02"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"## {extender.__version__} (2026-01-02)" in process.stdout
    fragments = [path.name for path in (ROOT / "docs" / "changelog.d").glob("*.md")]
    assert len(re.findall(r"(?m)^- ", process.stdout)) == len(fragments)


@pytest.mark.parametrize(("version", "status"), [(extender.__version__, 2), ("0.0.9", 0)])
def test_a_version_is_added_to_the_changelog_once(tmp_path: Path, version: str, status: int) -> None:
    (tmp_path / "CHANGELOG.md").write_text(f"## {version} (2026-01-02)\n")
    (tmp_path / "towncrier").write_text("#!/bin/sh\necho built\n")
    (tmp_path / "towncrier").chmod(0o755)
    command = ["make", "-C", str(tmp_path), "-f", str(ROOT / "Makefile"), "changelog", "READY=", f"BIN={tmp_path}"]
    process = subprocess.run([*command, f"PY={sys.executable}"], capture_output=True, text=True, check=False)
    assert process.returncode == status
    assert ("\nbuilt\n" in process.stdout) == (status == 0)
    message = f"CHANGELOG.md has {version} already; set the next __version__ in extender/__init__.py\n"
    assert (message in process.stderr) == (status == 2)


def test_the_first_word_of_a_fragment_selects_its_heading(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "changelog.d"
    folder.mkdir(parents=True)
    for file in ("pyproject.toml", "docs/changelog.d/template.md.j2"):
        (tmp_path / file).write_text((ROOT / file).read_text())
    fragments = {"odd.fixed": "Third.", "http-b.security": "Last.", "ui-a.fixed": "Second.", "serve-a.fixed": "First."}
    for name, text in fragments.items():
        (folder / f"{name}.md").write_text(text)
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "1.0", "--dir", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.findall(r"(?m)^(?:#{3,4}|-) .+", process.stdout) == [
        "### Fixed",
        "#### Extender verbs",
        "- First.",
        "#### Pages",
        "- Second.",
        "#### Other",
        "- Third.",
        "### Security",
        "#### HTTP, TLS and authentication",
        "- Last.",
    ]


@pytest.mark.parametrize("file", WORKFLOWS, ids=[file.name for file in WORKFLOWS])
def test_actions_are_pinned_by_commit_with_a_version_comment(file: Path) -> None:
    uses = re.findall(r"uses: (.+)", file.read_text())
    assert uses
    assert [use for use in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def test_workflows_run_targets_that_exist() -> None:
    existing = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    texts = [file.read_text().replace("- run: ", "") for file in WORKFLOWS]
    workflow_targets = {target for text in texts for match in MAKE_LINE.findall(text) for target in match.split()}
    matrix = yaml.safe_load(WORKFLOWS[0].read_text())["jobs"]["target"]["strategy"]["matrix"]["target"]
    assert {"check", "demo", "test", "test-build"} <= workflow_targets | set(matrix)
    assert (workflow_targets | set(matrix)) - existing == set()


def test_the_demo_of_a_fresh_clone_installs_no_tools_of_development() -> None:
    command = ["make", "-C", str(ROOT), "--dry-run", "--always-make", "VENV=missing", "demo"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert ".venv-demo/bin/python -m pip" in printed
    assert "--requirement requirements.lock" in printed
    assert "requirements-dev.lock" not in printed


def test_ci_runs_all_targets_of_the_script() -> None:
    script_targets = {
        target for match in MAKE_LINE.findall((ROOT / ".ci" / "run").read_text()) for target in match.split()
    }
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    # Other targets build the programs of these two.
    assert {
        target for target in script_targets - {"control-plane", "helm"} if not re.search(rf"\b{target}\b", ci)
    } == set()
    assert {"check", "demo", "test", "docs", "scan", "test-build"} <= script_targets


def test_the_krew_manifest_has_a_platform_for_each_archive(tmp_path: Path) -> None:
    archives = [tmp_path / f"kubectl-placement_{platform}.tar.gz" for platform in ("linux_amd64", "darwin_arm64")]
    for archive in archives:
        archive.write_bytes(b"archive")
    script = ROOT / ".github" / "krew" / "write_manifest.py"
    command = [sys.executable, str(script), "owner/name", "1.2.3", *map(str, archives)]
    manifest = yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    spec = manifest["spec"]
    assert (manifest["metadata"]["name"], spec["version"]) == ("placement", "v1.2.3")
    assert spec["homepage"] == "https://github.com/owner/name"
    assert len(spec["shortDescription"]) <= 80  # the limit of krew's index
    checksum = "0eb3e36bfb24dcd9bb1d1bece1531216b59539a8fde17ee80224af0653c92aa3"
    assert spec["platforms"] == [
        {
            "selector": {"matchLabels": {"os": system, "arch": machine}},
            "uri": "https://github.com/owner/name/releases/download/v1.2.3/"
            f"kubectl-placement_{system}_{machine}.tar.gz",
            "sha256": checksum,
            "bin": "kubectl-placement/kubectl-placement",
        }
        for system, machine in (("darwin", "arm64"), ("linux", "amd64"))
    ]


def test_every_skipped_check_has_a_reason() -> None:
    text = (ROOT / ".scan" / "checkov.yaml").read_text()
    explained = re.findall(r"(?m)(?:^  # .+\n)+^  - (CKV\w+)$", text)
    assert explained == yaml.safe_load(text)["skip-check"]
