"""Helm as the tests call it, and what it renders."""

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


class RefusedError(Exception):
    """Helm ended with an error; its text is what it said."""


def program() -> str:
    """The file of Helm; the test is skipped, or fails where Helm must be there, if it was not built."""
    found = MODULE.built("helm")
    if not found:
        why = f"helm {MODULE.version()} not built; run `make helm`"
        # `.ci/run` and `make test-chart` say that it must be there.
        (pytest.fail if os.environ.get("HELM") == "required" else pytest.skip)(why)
    return str(found)


def helm(*arguments: str, **environment: str) -> str:
    """What Helm prints.

    Raises:
        RefusedError: it ended with a status other than 0.
    """
    done = subprocess.run(
        [program(), *arguments], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RefusedError(done.stderr)
    return done.stdout


def rendered(*values: Path, kubernetes: str = "v1.36.3", namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """All objects of the chart with these files of values."""
    files = [flag for file in values for flag in ("--values", str(file))]
    text = helm("template", RELEASE, str(CHART), "--namespace", namespace, "--kube-version", kubernetes, *files)
    return [one for one in yaml.safe_load_all(text) if one]


def by_name(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The objects by kind and name, as `Deployment/x-extender`."""
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}
