"""What the chart renders, value by value, and which values it refuses."""

from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from tests.chart.helm import CHART, RefusedError, by_name, helm, rendered

HERE = Path(__file__).parent
RENDERS: dict[str, Any] = yaml.safe_load((HERE / "renders.yaml").read_text())
REFUSED: dict[str, Any] = yaml.safe_load((HERE / "refused.yaml").read_text())
EXAMPLES = sorted(CHART.glob("ci/*-values.yaml"))


def files_of(case: dict[str, Any], folder: Path) -> list[Path]:
    """The files of values of a case, the one of chart/ci first."""
    files = [CHART / "ci" / f"{case['ci']}-values.yaml"] if "ci" in case else []
    if "values" in case:
        file = folder / "values.yaml"
        file.write_text(yaml.safe_dump(case["values"]))
        files.append(file)
    return files


def objects_of(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the case renders, by kind and name; `document` is the file inside a ConfigMap that it names."""
    objects: dict[str, Any] = by_name(rendered(*files_of(case, folder), kubernetes=case.get("kubernetes", "v1.36.3")))
    if inner := case.get("document"):
        objects["document"] = yaml.safe_load(objects[inner["object"]]["data"][inner["key"]])
    return objects


@pytest.mark.parametrize("case", RENDERS.values(), ids=RENDERS)
def test_the_chart_renders(case: dict[str, Any], tmp_path: Path) -> None:
    objects = objects_of(case, tmp_path)
    expected = case.get("expect", {})
    assert set(expected) - set(objects) == set()
    said = {name: {path: jmespath.search(path, objects[name]) for path in paths} for name, paths in expected.items()}
    assert said == expected
    assert set(case.get("absent", ())) & set(objects) == set()


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_the_chart_refuses(case: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as refused:
        rendered(*files_of(case, tmp_path), kubernetes=case.get("kubernetes", "v1.36.3"))
    assert case["says"] in str(refused.value)


@pytest.mark.parametrize("values", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_helm_s_own_linter_has_nothing_to_say(values: Path) -> None:
    assert "[ERROR]" not in helm("lint", str(CHART), "--strict", "--values", str(values))


def test_a_changed_configuration_starts_the_pods_anew(tmp_path: Path) -> None:
    def checksum(verbosity: dict[str, Any]) -> str:
        objects = objects_of({"ci": "standalone", "values": verbosity}, tmp_path)
        found: str = objects["Deployment/x-extender"]["spec"]["template"]["metadata"]["annotations"][
            "checksum/configuration"
        ]
        return found

    before = checksum({})
    assert checksum({"clientConnection": {"qps": 5}}) != before
    assert checksum({"replicaCount": 5}) == before


def test_the_selector_never_changes_with_values(tmp_path: Path) -> None:
    selectors = [objects_of({"ci": file.stem.removesuffix("-values")}, tmp_path) for file in EXAMPLES]
    found = [one["spec"]["selector"] for objects in selectors for name, one in objects.items() if "Deployment" in name]
    assert found == [{"matchLabels": {"app.kubernetes.io/name": "extender", "app.kubernetes.io/instance": "x"}}] * len(
        EXAMPLES
    )


def test_there_are_at_least_150_expectations_and_15_examples() -> None:
    counted = sum(len(paths) for case in RENDERS.values() for paths in case.get("expect", {}).values())
    assert counted >= 150
    assert len(EXAMPLES) >= 15
