"""The chart renders the expected fields and rejects invalid values."""

from collections.abc import Iterator
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


def select_options(case: dict[str, Any]) -> dict[str, str]:
    """Return the options of `render_chart` that a case names."""
    return {name: case[name] for name in ("kubernetes", "namespace", "release") if name in case}


def render_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Render a case; return the objects by kind and name, and as `document` the file of a ConfigMap that it names."""
    objects: dict[str, Any] = index_by_name(render_chart(*write_values_files(case, folder), **select_options(case)))
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
        render_chart(*write_values_files(case, tmp_path), **select_options(case))
    assert case["says"] in str(raised.value)


def test_equal_ports_are_rejected_also_if_a_flag_sets_one() -> None:
    """Helm reads numbers of --set as integers, and those of a file as floating-point numbers."""
    with pytest.raises(HelmError, match=r"must differ in mode beside.*\[10259 10259 10260\]"):
        helm("template", "x", str(CHART), "--set", "extender.port=10259")


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


@pytest.mark.parametrize("values", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_the_selectors_match_the_replicas_and_not_the_pod_of_helm_test(values: Path) -> None:
    """A disruption budget would count a failed test as a replica, and a policy would limit the requests of the test."""
    objects = index_by_name(render_chart(values))
    (deployment,) = (obj for obj in objects.values() if obj["kind"] == "Deployment")
    replica_labels = deployment["spec"]["template"]["metadata"]["labels"]
    test_labels = [obj["metadata"]["labels"] for obj in objects.values() if obj["kind"] == "Pod"]
    for obj in objects.values():
        if obj["kind"] in {"Service", "PodDisruptionBudget", "NetworkPolicy", "Deployment"}:
            selector = obj["spec"].get("podSelector", obj["spec"].get("selector"))
            wanted = selector.get("matchLabels", selector).items()
            assert [wanted <= labels.items() for labels in (replica_labels, *test_labels)] == [True] + [False] * len(
                test_labels
            )


def list_keys(node: yaml.Node) -> Iterator[list[str]]:
    """Yield the keys of each mapping below *node*."""
    if isinstance(node, yaml.MappingNode):
        yield [key.value for key, _ in node.value]
        for _, value in node.value:
            yield from list_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from list_keys(value)


def test_a_label_or_annotation_of_several_values_occurs_once() -> None:
    """Flux, which reads the rendered YAML with kustomize, rejects a key that occurs twice."""
    labels = "podLabels.team=b,metrics.serviceMonitor.labels.team=c,metrics.prometheusRule.labels.team=d"
    annotations = "podAnnotations.note=a,commonAnnotations.note=b,podAnnotations.checksum/configuration=c"
    metrics = "metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboard.enabled=true"
    text = helm("template", "x", str(CHART), "--set", f"commonLabels.team=a,{labels},{annotations},{metrics}")
    for document in yaml.compose_all(text):
        for keys in list_keys(document):
            assert sorted(set(keys)) == sorted(keys)
    objects = index_by_name([obj for obj in yaml.safe_load_all(text) if obj])
    template = objects["Deployment/x-extender"]["spec"]["template"]["metadata"]
    assert (template["labels"]["team"], template["annotations"]["note"]) == ("b", "a")
    assert objects["Service/x-extender"]["metadata"]["labels"]["team"] == "a"
    assert objects["ServiceMonitor/x-extender"]["metadata"]["labels"]["team"] == "c"


LIKE_NUMBERS: dict[str, Any] = {
    "nameOverride": "123",
    "schedulerName": "1.5",
    "podSchedulerName": "true",
    "serviceAccount": {"name": "0x10"},
    "leaderElection": {"resourceName": "12"},
    "metrics": {
        "readers": [{"name": "1", "namespace": "2"}],
        **{name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")},
    },
    "service": {"allowedClientNames": ["5", "a: b #c"]},
    "networkPolicy": {"enabled": True},
}
"""Texts that YAML reads as another type unless they are quoted."""


@pytest.mark.parametrize("certificates", ["selfSigned", "certManager"])
@pytest.mark.parametrize("mode", ["beside", "standalone", "service"])
def test_names_and_labels_that_look_like_numbers_stay_texts(mode: str, certificates: str, tmp_path: Path) -> None:
    """A release or namespace may be named 123 or true; the API server rejects a label or name of another type."""
    values = {**LIKE_NUMBERS, "mode": mode, "certificates": {"source": certificates}}
    (file := tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    objects = render_chart(file, release="123", namespace="1e3")
    assert objects
    for obj in objects:
        metadata = obj["metadata"]
        assert {type(value) for value in (metadata["name"], *metadata["labels"].values())} == {str}, obj
        assert metadata.get("namespace", "1e3") in {"1e3", "kube-system"}
        for name in find_values(obj, {"serviceAccountName", "schedulerName", "commonName", "secretName"}):
            assert isinstance(name, str)
        for rule in obj.get("rules", ()):
            assert rule.get("resourceNames", ["12"]) == ["12"]
        for subject in obj.get("subjects", ()):
            assert (subject["name"], subject["namespace"]) in {("0x10", "1e3"), ("1", "2")}
    indexed = index_by_name(objects)
    arguments = indexed["Deployment/123"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert ("--allowed-client-names=5,a: b #c" in arguments) == (mode == "service")
    for text in indexed["ConfigMap/123"]["data"].values():
        configuration = yaml.safe_load(text)
        assert configuration["profiles"][0]["schedulerName"] in {"1.5", "default-scheduler"}
        assert configuration["leaderElection"].get("resourceNamespace", "1e3") == "1e3"


def find_values(obj: Any, keys: set[str]) -> Iterator[Any]:
    """Yield the values of *keys* anywhere in *obj*."""
    items = obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
    for key, value in items:
        if key in keys:
            yield value
        yield from find_values(value, keys)


def test_there_are_at_least_150_expectations_and_15_examples() -> None:
    expectation_count = sum(len(paths) for case in RENDER_CASES.values() for paths in case.get("expect", {}).values())
    assert expectation_count >= 150
    assert len(EXAMPLES) >= 15
