"""Runs Helm and renders the chart."""

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart.programs import MODULE

CHART: Final = Path(__file__).resolve().parents[2] / "chart"
RELEASE: Final = "x"
NAMESPACE: Final = "scheduling"


class HelmError(Exception):
    """Helm failed; the message is its stderr."""


def helm_path() -> str:
    """Return the path of Helm. If it was not built, skip the test, or fail it if Helm is required."""
    path = MODULE.find_built("helm")
    if not path:
        message = f"helm {MODULE.version()} not built; run `make helm`"
        # `.ci/run` and `make test-chart` require it.
        (pytest.fail if os.environ.get("HELM") == "required" else pytest.skip)(message)
    return str(path)


def helm(*arguments: str, **environment: str) -> str:
    """Run Helm and return its output.

    Raises:
        HelmError: the exit status is not 0.
    """
    process = subprocess.run(
        [helm_path(), *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise HelmError(process.stderr)
    return process.stdout


def render_chart(
    *values: Path, kubernetes: str = "v1.36.3", namespace: str = NAMESPACE, release: str = RELEASE
) -> list[dict[str, Any]]:
    """Render the chart with files of values; return all objects."""
    files = [flag for file in values for flag in ("--values", str(file))]
    text = helm("template", release, str(CHART), "--namespace", namespace, "--kube-version", kubernetes, *files)
    return [obj for obj in yaml.safe_load_all(text) if obj]


def index_by_name(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the objects by kind and name, such as `Deployment/x-extender`."""
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in objects}
