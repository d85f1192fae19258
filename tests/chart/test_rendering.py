"""The chart renders the expected fields and rejects invalid values."""

from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from tests.chart.helm import CHART, HelmError, helm, index_by_name, render_chart

HERE = Path(__file__).parent
RENDER_CASES: dict[str, Any] = yaml.safe_load((HERE / "renders.yaml").read_text())
INVALID_VALUES: dict[str, Any] = yaml.safe_load((HERE / "invalid_values.yaml").read_text())
EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))


def write_values_files(case: dict[str, Any], folder: Path) -> list[Path]:
    """Write the values of a case to a file; return the files of values, with that of chart/ci first."""
    files = [CHART / "ci" / f"{case['ci']}-values.yaml"] if "ci" in case else []
    if "values" in case:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(case["values"]))
        files.append(file)
    return files


def render_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Render a case; return the objects by kind and name, and as `document` the file of a ConfigMap that it names."""
    objects: dict[str, Any] = index_by_name(
        render_chart(*write_values_files(case, folder), kubernetes=case.get("kubernetes", "v1.36.3"))
    )
    if inner := case.get("document"):
        objects["document"] = yaml.safe_load(objects[inner["object"]]["data"][inner["key"]])
    return objects


@pytest.mark.parametrize("case", RENDER_CASES.values(), ids=RENDER_CASES)
def test_the_chart_renders_the_expected_fields(case: dict[str, Any], tmp_path: Path) -> None:
    objects = render_case(case, tmp_path)
    expected = case.get("expect", {})
    assert set(expected) - set(objects) == set()
    rendered = {
        name: {path: jmespath.search(path, objects[name]) for path in paths} for name, paths in expected.items()
    }
    assert rendered == expected
    assert set(case.get("absent", ())) & set(objects) == set()


@pytest.mark.parametrize("case", INVALID_VALUES.values(), ids=INVALID_VALUES)
def test_invalid_values_are_rejected(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HelmError) as raised:
        render_chart(*write_values_files(case, tmp_path), kubernetes=case.get("kubernetes", "v1.36.3"))
    assert case["says"] in str(raised.value)


@pytest.mark.parametrize("values", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_helm_lint_finds_no_error(values: Path) -> None:
    assert "[ERROR]" not in helm("lint", str(CHART), "--strict", "--values", str(values))


def test_a_changed_configuration_restarts_the_pods(tmp_path: Path) -> None:
    def checksum(verbosity: dict[str, Any]) -> str:
        objects = render_case({"ci": "standalone", "values": verbosity}, tmp_path)
        value: str = objects["Deployment/x-extender"]["spec"]["template"]["metadata"]["annotations"][
            "checksum/configuration"
        ]
        return value

    first_checksum = checksum({})
    assert checksum({"clientConnection": {"qps": 5}}) != first_checksum
    assert checksum({"replicaCount": 5}) == first_checksum


def test_the_selector_never_changes_with_values(tmp_path: Path) -> None:
    selectors = [render_case({"ci": file.stem.removesuffix("-values")}, tmp_path) for file in EXAMPLES]
    value = [obj["spec"]["selector"] for objects in selectors for name, obj in objects.items() if "Deployment" in name]
    assert value == [{"matchLabels": {"app.kubernetes.io/name": "extender", "app.kubernetes.io/instance": "x"}}] * len(
        EXAMPLES
    )


def test_there_are_at_least_150_expectations_and_15_examples() -> None:
    expectation_count = sum(len(paths) for case in RENDER_CASES.values() for paths in case.get("expect", {}).values())
    assert expectation_count >= 150
    assert len(EXAMPLES) >= 15
