"""Kubernetes 1.28 to 1.36 take every object of every example; the chart's pages say what its values say."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests.chart.helm import CHART, rendered

RELEASES = [f"1.{minor}" for minor in range(28, 37)]
EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))
NOT_OF_KUBERNETES = {"monitoring.coreos.com/v1", "cert-manager.io/v1"}


def faults(one: dict[str, Any], release: str) -> str:
    """What is wrong with an object; empty if nothing."""
    try:
        kubernetes_validate.validate(one, release, strict=True)
    except kubernetes_validate.ValidationError as fault:
        return f"{one['kind']}/{one['metadata']['name']}: {fault.message}"
    return ""


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    """What all examples render, once each; nothing in the chart but a tag depends on the release of Kubernetes."""
    found = {json.dumps(one): one for file in EXAMPLES for one in rendered(file)}
    return [one for one in found.values() if one["apiVersion"] not in NOT_OF_KUBERNETES]


@pytest.mark.parametrize("release", RELEASES)
def test_every_object_is_valid(release: str, objects: list[dict[str, Any]]) -> None:
    assert len(objects) > len(EXAMPLES) * 2
    assert [text for one in objects if (text := faults(one, release))] == []


def test_a_wrong_object_would_be_seen() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": 80}}
    assert "port" in faults(service, "1.36")


def test_readme_and_schema_say_what_values_yaml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(__file__).resolve().parents[2] / "docs" / "chart_values.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--check"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert ended.value.code == 0


def test_every_value_has_a_meaning() -> None:
    def without(schema: dict[str, Any], path: str) -> list[str]:
        if schema.get("additionalProperties") is False and "description" not in schema:
            return [p for key, sub in schema["properties"].items() for p in without(sub, f"{path}.{key}".strip("."))]
        return [] if "description" in schema else [path]

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert without(schema, "") == ["global"]
