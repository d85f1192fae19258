"""The sweep: it stops at a difference, shrinks it, writes it, and returns a status. The oracle is a stand-in."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import programs, sweep
from tests.oracle.answers import Oracle, OracleError, ask_extender


class EchoOracle(Oracle):
    """Answers as extender does, but without pods whose name is in *missing*, and refuses an empty cluster."""

    def __init__(self, *missing: str) -> None:
        self._missing = missing
        self._scenario: dict[str, Any] = {}

    def send(self, scenario: dict[str, Any]) -> None:
        self._scenario = scenario

    def receive(self) -> dict[str, Any]:
        if not self._scenario["items"]:
            raise OracleError("no items")
        answer = ask_extender(self._scenario, "1.36")
        pods = {key: result for key, result in answer["pods"].items() if key.partition("/")[2] not in self._missing}
        return {**answer, "pods": pods}


def run(oracle: Oracle, folder: Path, *arguments: str) -> int:
    return sweep.sweep(sweep.parse_options([f"--folder={folder}", *arguments]), oracle)


def test_equal_answers_are_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(EchoOracle(), tmp_path, "--number=14") == 0
    assert "14 scenarios" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_difference_ends_the_sweep_and_is_written_as_a_small_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(EchoOracle("pod-07"), tmp_path, "--number=200") == 1
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    golden, scenario = (json.loads(file.read_text()) for file in files)
    pods = [item["metadata"]["name"] for item in scenario["items"] if item["kind"] == "Pod"]
    assert pods == ["pod-07"]
    assert golden == {"pods": {}, "podGroups": {}, "events": [], "bindings": {}}
    assert files[1].name in capsys.readouterr().out


def test_an_exception_of_extender_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = EchoOracle()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    scenario = {"apiVersion": "v1", "kind": "List", "items": [namespace]}

    def raise_error(scenario: dict[str, Any], version: str) -> dict[str, Any]:
        raise IndexError("out of bounds")

    monkeypatch.setattr(sweep, "ask_extender", raise_error)
    difference = sweep.compare(copy.deepcopy(scenario), oracle, "1.36")
    assert difference.lines == ("extender raises IndexError: out of bounds",)
    assert difference.kinds == {"exception IndexError"}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("shop/web.nodes.node-1.filters.NodePorts: want 1, got 2", "nodes filters NodePorts"),
        ("shop/web.scores.node-1.plugins.ImageLocality.raw: want 1, got 2", "scores plugins ImageLocality"),
        ("shop/web.message: want 'a: b', got None", "message"),
        ("shop/web: want 1, got 2", "pods"),
        ("podGroup shop/ring.members.shop/web.node: want 'a', got 'b'", "podGroup members node"),
        ("podGroup shop/ring.victims: want [], got ['a']", "podGroup victims"),
        ("binding shop/web n1.claims.shop/gpu.reservedFor: want [], got [1]", "binding claims"),
    ],
)
def test_the_kind_of_a_difference_has_no_names_of_pods_and_nodes(line: str, kind: str) -> None:
    assert sweep.classify(line) == kind


def test_a_patch_version_means_its_minor() -> None:
    assert sweep.parse_options(["--kubernetes=1.37.2"]).kubernetes == "1.37"
    with pytest.raises(SystemExit):
        sweep.parse_options(["--kubernetes=1.35"])


def test_a_sweep_without_an_oracle_names_the_target_that_builds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sweep.main(["--number=1"]) == 2
    assert capsys.readouterr().err == "oracle v1.36.3 not built; run `make oracle`\n"
    assert set(programs.MODULES) == {"1.36", "1.37"}
