"""Every object of every example is valid for Kubernetes 1.28 to 1.37; README and schema follow values.yaml."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests.chart.helm import CHART, render_chart

RELEASES = [f"1.{minor}" for minor in range(28, 38)]
EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))
OTHER_API_VERSIONS = {"monitoring.coreos.com/v1", "cert-manager.io/v1"}


def validation_error(obj: dict[str, Any], release: str) -> str:
    """Return the validation error of an object; empty if it is valid."""
    try:
        kubernetes_validate.validate(obj, release, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{obj['kind']}/{obj['metadata']['name']}: {error.message}"
    return ""


def render_examples(release: str) -> list[dict[str, Any]]:
    """Render all examples for a Kubernetes release; return each distinct object of a Kubernetes kind."""
    objects = {json.dumps(obj): obj for file in EXAMPLES for obj in render_chart(file, kubernetes=f"v{release}.0")}
    return [obj for obj in objects.values() if obj["apiVersion"] not in OTHER_API_VERSIONS]


@pytest.mark.parametrize("release", RELEASES)
def test_every_object_is_valid(release: str) -> None:
    objects = render_examples(release)
    assert len(objects) > len(EXAMPLES) * 2
    assert [error for obj in objects if (error := validation_error(obj, release))] == []


def test_an_invalid_object_is_detected() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": 80}}
    assert "port" in validation_error(service, "1.36")


def test_readme_and_schema_are_generated_from_values_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(__file__).resolve().parents[2] / "docs" / "chart_values.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--check"])
    with pytest.raises(SystemExit) as exit_info:
        runpy.run_path(str(script), run_name="__main__")
    assert exit_info.value.code == 0


def test_every_value_has_a_description() -> None:
    def undescribed_paths(schema: dict[str, Any], path: str) -> list[str]:
        if schema.get("additionalProperties") is False and "description" not in schema:
            return [
                p
                for key, sub in schema["properties"].items()
                for p in undescribed_paths(sub, f"{path}.{key}".strip("."))
            ]
        return [] if "description" in schema else [path]

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert undescribed_paths(schema, "") == ["global"]
