"""The alerts of the chart, put to Prometheus itself: they fire when they should, and else keep still."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.observe.scheduler_families import PLUGIN_FAMILIES, SCHEDULER_FAMILIES
from tests.chart.helm import CHART, by_name, rendered

HERE = Path(__file__).parent
MODES = ("beside", "standalone", "service")


def promtool(groups: list[dict[str, Any]], folder: Path, *arguments: str) -> None:
    """Puts these rules as rules.yaml to Prometheus' own checker, which must have nothing to say."""
    if not shutil.which("promtool"):
        why = "promtool not installed; on Debian: apt-get install prometheus"
        (pytest.fail if os.environ.get("PROMTOOL") == "required" else pytest.skip)(why)
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr


def rules(folder: Path, mode: str) -> list[dict[str, Any]]:
    """The groups of rules that a mode renders."""
    values = folder / f"{mode}.yaml"
    values.write_text(yaml.safe_dump({"mode": mode, "metrics": {"prometheusRule": {"enabled": True}}}))
    groups: list[dict[str, Any]] = by_name(rendered(values))["PrometheusRule/x-extender"]["spec"]["groups"]
    return groups


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    every = {rule["alert"]: rule for mode in MODES for group in rules(tmp_path, mode) for rule in group["rules"]}
    shutil.copy(HERE / "alerts.yaml", tmp_path)
    promtool([{"name": "all", "rules": [*every.values()]}], tmp_path, "test", "rules", "alerts.yaml")
    cases = yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"]
    fired = {one["alertname"] for case in cases for one in case["alert_rule_test"] if one.get("exp_alerts")}
    assert fired == set(every)


@pytest.mark.parametrize("mode", MODES)
def test_rules_are_well_formed(tmp_path: Path, mode: str) -> None:
    promtool(rules(tmp_path, mode), tmp_path, "check", "rules", "rules.yaml")


def test_alerts_and_dashboard_name_metrics_that_exist() -> None:
    named = "".join((CHART / "files" / name).read_text() for name in ("alerts.yaml", "dashboard.json"))
    asked = set(re.findall(r"\b(?:scheduler|extender)_[a-z_]+(?=\{)", named))
    source = "".join(file.read_text() for file in (CHART.parent / "extender" / "observe").glob("*.py"))
    ours = {family.name for family in (*PLUGIN_FAMILIES, *SCHEDULER_FAMILIES)} | set(
        re.findall(r'"(extender_[a-z_]+)"', source)
    )
    parts = r"(_bucket|_count|_sum)$"
    assert {
        name for name in asked if re.sub(parts, "", name) not in ours and name.removesuffix("_total") not in ours
    } == set()
    assert len(asked) > 15
