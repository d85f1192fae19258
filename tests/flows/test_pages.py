"""The pages of docs/ are correct: generated pages are current, commands run, named tests and alerts exist."""

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
from tests.doc_pages import DOCS, EXTENDER, ROOT, PageRunner, Step, parse_blocks, parse_steps

PAGES = [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "start").glob("*.md"))]
TESTED_PAGES = {
    "ask.md",  # test_demo_cluster.py
    "beside.md", "standalone.md", "operations.md",  # tests/controlplane/test_pages.py
    "helm.md",  # here, except the docker commands
    "migration.md",  # here
    "plugins.md",  # test_plugin_page.py
    "what-if.md",  # test_what_if_page.py
    "rebalance.md",  # test_rebalance_page.py
    "shared-gpus.md",  # test_shared_gpus_page.py
    "science.md",  # here
}  # fmt: skip
BODY = """{"Pod": {"metadata": {"name": "trial", "namespace": "shop", "uid": "trial"},
  "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "750m", "memory": "1Gi"}}}]}},
  "NodeNames": ["general-a1", "general-a3", "general-c1", "general-c3", "gpu-a1"]}"""


def test_the_reference_is_generated_from_the_code() -> None:
    command = [sys.executable, str(DOCS / "write_reference.py"), "--check"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        (
            "parity.yaml",
            "NodeName: {}\n",
            "docs/parity.yaml: add how these plugins are compared with kube-scheduler: NodeName\n",
        ),
        (
            "fields.yaml",
            "  podInitialBackoffSeconds: Backoff of a pod after its first failed attempt.\n",
            'docs/fields.yaml: add a description of podInitialBackoffSeconds to ""\n',
        ),
    ],
    ids=["a plugin", "a field"],
)
def test_the_reference_names_the_file_that_lacks_a_line(tmp_path: Path, file: str, line: str, message: str) -> None:
    for folder in ("tests", "chart"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    docs = tmp_path / "docs"
    docs.mkdir()
    for source in (*DOCS.glob("*.py"), *DOCS.glob("*.yaml")):
        shutil.copy(source, docs)
    (docs / file).write_text((DOCS / file).read_text().replace(line, ""))
    command = [sys.executable, str(docs / "write_reference.py")]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (1, message)


def test_no_text_of_the_reference_is_indented_like_code() -> None:
    texts = {page.name: page.read_text() for page in (DOCS / "reference").glob("*.md")}
    outside_of_fences = {name: re.sub(r"(?ms)^```.*?^```$", "", text) for name, text in texts.items()}
    indented = [(name, line) for name, text in outside_of_fences.items() for line in re.findall(r"(?m)^ {4}.*", text)]
    assert indented == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = yaml.safe_load((ROOT / ".mkdocs.yml").read_text())
    sections = [entry if isinstance(entry, dict) else {"": [entry]} for entry in site["nav"]]
    named = [page for section in sections for pages in section.values() for page in pages]
    folders = (DOCS, DOCS / "start", DOCS / "reference", DOCS / "decisions")
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for folder in folders for page in folder.glob("*.md"))


def test_the_commands_of_every_page_are_tested() -> None:
    assert {page.name for page in PAGES if parse_steps(parse_blocks(page))} == TESTED_PAGES


def test_the_commands_of_the_migration_page(tmp_path: Path) -> None:
    shutil.copy(DOCS / "examples" / "demo" / "cluster.yaml", tmp_path)
    (tmp_path / "body.json").write_text(BODY)
    blocks = parse_blocks(DOCS / "migration.md")
    programs = {"extender": EXTENDER, "curl": ("curl", "--noproxy", "*")}
    runner = PageRunner(tmp_path, programs, {"8888": str(free_ports(1)[0])})
    runner.write_files(blocks)
    try:
        for step in parse_steps(blocks):
            runner.run_step(step, time.sleep)
    finally:
        runner.stop_background_processes()


def test_csv_files_become_a_trace(tmp_path: Path) -> None:
    blocks = parse_blocks(DOCS / "science.md")
    runner = PageRunner(tmp_path, {"extender": EXTENDER, "python": (sys.executable,)})
    runner.write_files(blocks)
    for step in parse_steps(blocks):
        runner.run_step(step, time.sleep)


@pytest.mark.parametrize(
    "step", [step for step in parse_steps(parse_blocks(DOCS / "start" / "helm.md")) if " chart " in step.command],
    ids=lambda step: step.command,
)  # fmt: skip
def test_helm_renders_what_the_page_installs(step: Step) -> None:
    arguments = shlex.split(step.command)
    flags = [word for word in arguments[2:] if word not in {"--install", "--create-namespace"}]
    text = helm.helm("template", *[str(helm.CHART) if word == "chart" else word for word in flags])
    kinds = {obj["kind"] for obj in yaml.safe_load_all(text) if obj}
    assert {"Deployment", "ClusterRole", "ServiceAccount"} <= kinds


def test_every_alert_has_advice() -> None:
    alerts = {alert["alert"] for alert in yaml.safe_load((ROOT / "chart" / "files" / "alerts.yaml").read_text())}
    advice = re.findall(r"(?m)^\| (Extender\w+) \|", (DOCS / "operations.md").read_text())
    assert sorted(advice) == sorted(alerts)


def test_every_test_named_on_the_security_page_exists() -> None:
    names = re.findall(r"`(tests/[\w/]+\.py)`: ((?:test_\w+(?:, )?)+)", (DOCS / "security.md").read_text())
    tests = [(file, test) for file, several in names for test in several.split(", ") if test]
    assert len(tests) >= 20
    missing = [(file, test) for file, test in tests if not re.search(rf"def {test}\(", (ROOT / file).read_text())]
    assert missing == []


def test_every_bound_on_the_security_page_names_a_test() -> None:
    section = (DOCS / "security.md").read_text().partition("## Bounds")[2].partition("## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 40
    without_test = [row[0] for row in rows if not re.search(r"`tests/[\w/]+\.py`: test_\w+", row[-1])]
    assert without_test == []


def test_every_script_of_the_benchmarks_page_exists() -> None:
    names = set(re.findall(r"tests/bench/\w+\.py", (DOCS / "benchmarks.md").read_text()))
    programs = [file for file in (ROOT / "tests/bench").glob("*.py") if "__main__" in file.read_text()]
    assert names == {f"tests/bench/{file.name}" for file in programs}
