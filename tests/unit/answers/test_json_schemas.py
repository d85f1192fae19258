"""JSON Schemas of answers: real output matches them exactly, and documents of earlier versions stay valid."""

import gzip
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from extender.analysis.recorded_cluster import read_recording
from extender.analysis.recording_writer import write_recording
from extender.answers.json_schemas import ANSWER_TYPES, make_json_schema
from extender.planning.sweep import make_sweep_row
from tests.unit.experiments.small_trace import small_trace_text
from tests.unit.planning.clusters import as_list, node, pod

Run = Callable[..., tuple[int, str, str]]

ROOT = Path(__file__).resolve().parents[3]
DEMO = str(ROOT / "docs" / "examples" / "demo" / "cluster.yaml")
OLD_DOCUMENTS = ROOT / "tests" / "cases" / "answers"


def read_schema(kind: str) -> dict[str, Any]:
    """Return the schema file in the package."""
    schema: dict[str, Any] = json.loads((files("extender") / "answers" / "schemas" / f"{kind}.json").read_text())
    return schema


def forbid_unknown_fields(schema: Any) -> Any:
    """Return *schema* without room for fields that it does not name."""
    if isinstance(schema, list):
        return [forbid_unknown_fields(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: forbid_unknown_fields(part) for key, part in schema.items()}
    return {**strict, "additionalProperties": False} if "properties" in strict else strict


def check_strictly(kind: str, document: Any) -> None:
    """Check a document against its schema; unknown fields are errors."""
    jsonschema.Draft202012Validator(forbid_unknown_fields(read_schema(kind))).validate(document)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write_list(name: str, *objects: dict[str, Any]) -> str:
        (tmp_path / name).write_text(as_list(objects))
        return str(tmp_path / name)

    return write_list


def test_the_files_are_those_of_the_types() -> None:
    assert {kind: read_schema(kind) for kind in ANSWER_TYPES} == {kind: make_json_schema(kind) for kind in ANSWER_TYPES}


@pytest.mark.parametrize("kind", ANSWER_TYPES)
def test_each_file_is_a_valid_schema(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(read_schema(kind))


@pytest.mark.parametrize("arguments", [(), ("shop/api-7f4b-c6jd2", "ml/trainer-0"), ("--emulated-version", "1.36")])
def test_explanations_match(extender: Run, arguments: tuple[str, ...]) -> None:
    status, out, _ = extender("explain", "-f", DEMO, "-o", "json", *arguments)
    answer = json.loads(out)
    assert (status, list(answer), answer["kind"], answer["schemaVersion"]) == (
        0, ["schemaVersion", "kind", "pods"], "Explanation", "1.0"
    )  # fmt: skip
    check_strictly("Explanation", answer)


def test_a_missing_field_and_an_unknown_field_do_not_match(extender: Run) -> None:
    answer = json.loads(extender("explain", "-f", DEMO, "-o", "json", "batch/import")[1])
    values = answer["pods"]["batch/import"]
    check_strictly("Explanation", answer)
    with pytest.raises(jsonschema.ValidationError, match="'surprise' was unexpected"):
        check_strictly("Explanation", {**answer, "pods": {"batch/import": {**values, "surprise": 1}}})
    del values["best"]
    with pytest.raises(jsonschema.ValidationError, match="'best' is a required property"):
        check_strictly("Explanation", answer)


def test_the_yaml_has_the_values_of_the_json(extender: Run) -> None:
    yaml_text = extender("explain", "-f", DEMO, "-o", "yaml", "batch/import")[1]
    json_text = extender("explain", "-f", DEMO, "-o", "json", "batch/import")[1]
    assert msgspec.yaml.decode(yaml_text) == json.loads(json_text)


@pytest.mark.parametrize("preempt", [(), ("--preempt",)])
def test_simulations_match(extender: Run, preempt: tuple[str, ...]) -> None:
    answer = json.loads(extender("simulate", "-f", DEMO, "-o", "json", *preempt)[1])
    check_strictly("Simulation", answer)
    codes = {code for group in answer["unplaced"] for code in group["reasonCodes"]}
    assert {"InsufficientCPU", "UntoleratedTaint", "HostPortsInUse", "SchedulingGated"} <= codes


SCENARIOS = {
    "a drain": ("--drain", "general-a1"),
    "a lost zone with preemption": ("--lose", "topology.kubernetes.io/zone=eu-1a", "--preempt"),
    "fewer pods and prices": ("--scale", "replicaset/api-7f4b=1", "-n", "shop", "--cost-label", "price"),
    "a cordoned node": ("--cordon", "general-a1"),
}


@pytest.mark.parametrize("flags", SCENARIOS.values(), ids=SCENARIOS)
def test_answers_about_scenarios_match(extender: Run, flags: tuple[str, ...]) -> None:
    status, out, err = extender("what-if", "-f", DEMO, "-o", "json", *flags)
    assert (status, "Error" in err) == (0, False)
    check_strictly("WhatIf", json.loads(out))


def test_the_lines_of_a_sweep_match(extender: Run, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text('scenarios: [{drain: "*"}]\n')
    out = extender("what-if", "-f", DEMO, "--sweep", str(tmp_path / "sweep.yaml"), "-o", "json")[1]
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == 12
    for line in lines:
        check_strictly("SweepResult", line)


def test_counts_of_copies_match(extender: Run, write: Callable[..., str]) -> None:
    small = write("small.json", pod("small", "100m", owner=""))
    large = write("large.json", pod("large", "900", owner=""))
    one = json.loads(extender("fits", "-f", DEMO, "-p", small, "-o", "json")[1])
    limited = json.loads(extender("fits", "-f", DEMO, "-p", small, "-o", "json", "--limit", "2")[1])
    several = json.loads(extender("fits", "-f", DEMO, "-p", small, "-p", large, "-o", "json")[1])
    for answer in (one, limited):
        check_strictly("Fits", answer)
    check_strictly("FitsByShape", several)


def test_comparisons_match(extender: Run, write: Callable[..., str]) -> None:
    cluster = write("c.json", node("n1", "4"), node("n2", "4"), pod("big", "5"), pod("web-1"), pod("web-2"))
    arguments = ("-f", cluster, "--emulated-version", "1.36", "--with-emulated-version", "1.37", "-o", "json")
    check_strictly("Comparison", json.loads(extender("compare", *arguments)[1]))


def test_plans_match(extender: Run, write: Callable[..., str]) -> None:
    taint = {"key": "broken", "value": "", "effect": "NoSchedule"}
    cluster = write(
        "c.json", node("n1", "4", taints=[taint]), node("n2", "4"), pod("a", "1", on="n1"), pod("b", "1", on="n2")
    )
    for question in (("--fix",), ("--empty",)):
        check_strictly("Rebalance", json.loads(extender("rebalance", "-f", cluster, *question, "-o", "json")[1]))
    room = write("r.json", node("n1", "4"), node("n2", "2"), pod("a", "2", on="n1"), pod("big", "4"))
    answer = json.loads(extender("rebalance", "-f", room, "--for", "big", "-o", "json")[1])
    check_strictly("Rebalance", answer)
    assert [step["pod"] for step in answer["steps"] if step["action"] == "evict"] == ["default/a"]


def test_the_lines_of_experiments_match(extender: Run, tmp_path: Path) -> None:
    trace, curves = tmp_path / "trace.json", tmp_path / "curves.jsonl"
    trace.write_text(small_trace_text())
    arguments = ("--trace", str(trace), "--policy", "Fill", "--seeds", "1", "-o", "jsonl", "--curves", str(curves))
    check_strictly("ExperimentRun", json.loads(extender("experiment", *arguments)[1]))
    check_strictly("ExperimentCurve", json.loads(curves.read_text()))


def test_a_recording_matches(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    with path.open("wb") as file:
        write_recording(read_recording([DEMO]), file, compress=False)
    document = json.loads(path.read_text())
    check_strictly("Recording", document)
    assert document["schemaVersion"] == "1.0"
    assert len(read_recording([str(path)]).objects) == len(read_recording([DEMO]).objects)


def list_old_documents() -> list[Path]:
    """Return the documents that earlier versions wrote; the name is the kind."""
    return sorted(OLD_DOCUMENTS.glob("*/*.json.gz"))


@pytest.mark.parametrize("path", list_old_documents(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_document_of_an_earlier_version_is_valid(path: Path) -> None:
    document = json.loads(gzip.decompress(path.read_bytes()))
    kind = path.name.removesuffix(".json.gz")
    jsonschema.Draft202012Validator(read_schema(kind)).validate(document)
    assert isinstance(msgspec.convert(document, ANSWER_TYPES[kind]), ANSWER_TYPES[kind])


def test_there_is_a_document_of_version_1_0_of_each_kind() -> None:
    names = {path.name.removesuffix(".json.gz") for path in OLD_DOCUMENTS.glob("1.0/*.json.gz")}
    assert names == set(ANSWER_TYPES)


@pytest.mark.parametrize("name", ["before-1.0/recording.json", "1.0/Recording.json.gz"])
def test_a_recording_of_an_earlier_version_gives_the_same_answer(extender: Run, name: str) -> None:
    status, out, err = extender("explain", "-f", str(OLD_DOCUMENTS / name), "-o", "json")
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert answer["pods"]["default/big"]["message"] == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available:"
        " 2 Preemption is not helpful for scheduling."
    )


def test_a_line_of_a_sweep_before_1_0_is_read() -> None:
    line = json.loads((OLD_DOCUMENTS / "before-1.0" / "sweep_result.json").read_text())
    row = make_sweep_row(line)
    assert (row.scenario, row.waiting, row.moved, row.cpu) == ("--drain n1", 0, 1, (3000, 8000))


def test_a_recording_of_another_major_version_is_refused(extender: Run, tmp_path: Path) -> None:
    path = tmp_path / "future.json"
    path.write_text('{"kind": "List", "apiVersion": "v1", "schemaVersion": "2.0", "items": []}')
    status, _, err = extender("explain", "-f", str(path))
    assert (status, err.splitlines()[0]) == (
        2, f'extender: {path}: schemaVersion: "2.0" is not readable; want 1.x, or use a newer extender'
    )  # fmt: skip
