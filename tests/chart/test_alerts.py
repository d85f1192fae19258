"""The alerts of the chart, checked with promtool: they fire in their cases and in no others."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.metrics.scheduler_families import PLUGIN_FAMILIES, SCHEDULER_FAMILIES
from tests.chart.helm import CHART, index_by_name, render_chart

HERE = Path(__file__).parent
MODES = ("beside", "standalone", "service")


def run_promtool(groups: list[dict[str, Any]], folder: Path, *arguments: str) -> None:
    """Write the rules to rules.yaml and run promtool, which must succeed."""
    if not shutil.which("promtool"):
        message = "promtool not installed; on Debian: apt-get install prometheus"
        (pytest.fail if os.environ.get("PROMTOOL") == "required" else pytest.skip)(message)
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    process = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert not process.returncode, process.stdout + process.stderr


def render_rule_groups(folder: Path, mode: str) -> list[dict[str, Any]]:
    """Render the rule groups of a mode."""
    values = folder / f"{mode}.yaml"
    values.write_text(yaml.safe_dump({"mode": mode, "metrics": {"prometheusRule": {"enabled": True}}}))
    groups: list[dict[str, Any]] = index_by_name(render_chart(values))["PrometheusRule/x-extender"]["spec"]["groups"]
    return groups


def test_every_alert_fires_in_its_case(tmp_path: Path) -> None:
    rules_by_alert = {
        rule["alert"]: rule for mode in MODES for group in render_rule_groups(tmp_path, mode) for rule in group["rules"]
    }
    shutil.copy(HERE / "alerts.yaml", tmp_path)
    run_promtool([{"name": "all", "rules": [*rules_by_alert.values()]}], tmp_path, "test", "rules", "alerts.yaml")
    cases = yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"]
    fired_alerts = {test["alertname"] for case in cases for test in case["alert_rule_test"] if test.get("exp_alerts")}
    assert fired_alerts == set(rules_by_alert)


@pytest.mark.parametrize("mode", MODES)
def test_rules_are_well_formed(tmp_path: Path, mode: str) -> None:
    run_promtool(render_rule_groups(tmp_path, mode), tmp_path, "check", "rules", "rules.yaml")


def test_the_reference_has_each_metric_of_alerts_dashboard_and_pages() -> None:
    docs = CHART.parent / "docs"
    files = [CHART / "files" / "alerts.yaml", CHART / "files" / "dashboard.json", CHART / "README.md"]
    files += [docs / "operations.md", docs / "plugins.md", *(docs / "start").glob("*.md")]
    text = "".join(file.read_text() for file in files)
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in re.findall(r"\b(?:scheduler|extender)_[a-z_]+(?=[{`\[])", text)
    }
    reference = (docs / "reference" / "metrics.md").read_text()
    assert {name for name in names if f"`{name}`" not in reference} == set()
    assert len(names) > 20


def test_alerts_and_dashboard_name_metrics_that_exist() -> None:
    text = "".join((CHART / "files" / name).read_text() for name in ("alerts.yaml", "dashboard.json"))
    metric_names = set(re.findall(r"\b(?:scheduler|extender)_[a-z_]+(?=\{)", text))
    source = "".join(file.read_text() for file in (CHART.parent / "extender" / "metrics").glob("*.py"))
    known_names = {family.name for family in (*PLUGIN_FAMILIES, *SCHEDULER_FAMILIES)} | set(
        re.findall(r'"(extender_[a-z_]+)"', source)
    )
    suffix = r"(_bucket|_count|_sum)$"
    assert {
        name
        for name in metric_names
        if re.sub(suffix, "", name) not in known_names and name.removesuffix("_total") not in known_names
    } == set()
    assert len(metric_names) > 15


def test_the_dashboard_does_not_count_the_pending_pods_of_a_standby(tmp_path: Path) -> None:
    """A standby schedules nothing, so all pending pods are in its active queue, or gated."""
    panels = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
    (target,) = next(panel["targets"] for panel in panels if panel.get("title") == "Pending pods")
    labels = 'job="x-extender", instance'
    values_by_series = {
        f'leader_election_master_status{{{labels}="leader"}}': 1,
        f'leader_election_master_status{{{labels}="standby"}}': 0,
        f'scheduler_pending_pods{{{labels}="leader", queue="active"}}': 0,
        f'scheduler_pending_pods{{{labels}="leader", queue="unschedulable"}}': 5,
        f'scheduler_pending_pods{{{labels}="standby", queue="active"}}': 5,
        f'scheduler_pending_pods{{{labels}="standby", queue="unschedulable"}}': 0,
    }
    expected = [{"labels": '{queue="active"}', "value": 0}, {"labels": '{queue="unschedulable"}', "value": 5}]
    expression = target["expr"].replace("$job", "x-extender")
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{value}x5"} for name, value in values_by_series.items()],
        "promql_expr_test": [{"expr": expression, "eval_time": "3m", "exp_samples": expected}],
    }
    (tmp_path / "dashboard.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [case]}))
    run_promtool([], tmp_path, "test", "rules", "dashboard.yaml")
