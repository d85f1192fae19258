"""The pages of docs/ tell the truth: what is made from the code is fresh, commands run, tests and alerts exist."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.chart import helm
from tests.controlplane.process import free_ports
from tests.pages import DOCS, EXTENDER, ROOT, Reader, Step, blocks, steps

PAGES = [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "start").glob("*.md"))]
TYPED = {
    "ask.md",  # test_demo_cluster.py
    "beside.md", "standalone.md", "operations.md",  # tests/controlplane/test_pages.py
    "helm.md",  # here, but for docker's
    "migration.md",  # here
    "plugins.md",  # test_plugin_page.py
}  # fmt: skip
BODY = """{"Pod": {"metadata": {"name": "trial", "namespace": "shop", "uid": "trial"},
  "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "750m", "memory": "1Gi"}}}]}},
  "NodeNames": ["general-a1", "general-a3", "general-c1", "general-c3", "gpu-a1"]}"""


def test_the_reference_says_what_the_code_says() -> None:
    command = [sys.executable, str(DOCS / "write_reference.py"), "--check"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_page_with_commands_is_one_whose_commands_a_test_types() -> None:
    assert {page.name for page in PAGES if steps(blocks(page))} == TYPED


def test_what_the_page_on_migration_says_can_be_done(tmp_path: Path) -> None:
    shutil.copy(DOCS / "examples" / "demo" / "cluster.yaml", tmp_path)
    (tmp_path / "body.json").write_text(BODY)
    found = blocks(DOCS / "migration.md")
    programs = {"extender": EXTENDER, "curl": ("curl", "--noproxy", "*")}
    reader = Reader(tmp_path, programs, {"8888": str(free_ports(1)[0])})
    reader.writes(found)
    try:
        for step in steps(found):
            reader.types(step, time.sleep)
    finally:
        reader.leaves()


@pytest.mark.parametrize(
    "step", [step for step in steps(blocks(DOCS / "start" / "helm.md")) if " chart " in step.command],
    ids=lambda step: step.command,
)  # fmt: skip
def test_helm_renders_what_the_page_installs(step: Step) -> None:
    words = shlex.split(step.command)
    flags = [word for word in words[2:] if word not in {"--install", "--create-namespace"}]
    text = helm.helm("template", *[str(helm.CHART) if word == "chart" else word for word in flags])
    kinds = {one["kind"] for one in yaml.safe_load_all(text) if one}
    assert {"Deployment", "ClusterRole", "ServiceAccount"} <= kinds


def test_every_alert_has_its_advice() -> None:
    alerts = {alert["alert"] for alert in yaml.safe_load((ROOT / "chart" / "files" / "alerts.yaml").read_text())}
    advice = re.findall(r"(?m)^\| (Extender\w+) \|", (DOCS / "operations.md").read_text())
    assert sorted(advice) == sorted(alerts)


def test_every_test_that_the_page_on_security_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`: ((?:test_\w+(?:, )?)+)", (DOCS / "security.md").read_text())
    tests = [(file, test) for file, several in named for test in several.split(", ") if test]
    assert len(tests) >= 20
    missing = [(file, test) for file, test in tests if not re.search(rf"def {test}\(", (ROOT / file).read_text())]
    assert missing == []


def test_every_program_of_the_page_on_benchmarks_exists() -> None:
    named = set(re.findall(r"tests/bench/\w+\.py", (DOCS / "benchmarks.md").read_text()))
    programs = [file for file in (ROOT / "tests/bench").glob("*.py") if "__main__" in file.read_text()]
    assert named == {f"tests/bench/{file.name}" for file in programs}
