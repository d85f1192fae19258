"""The built oracle: it agrees with all recorded results of kube-scheduler, and names errors of its input."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import programs
from tests.oracle.answers import Oracle, OracleError, find_answer_differences, running_oracle
from tests.oracle.generator.scenarios import CATEGORIES
from tests.oracle.test_cases import CASES
from tests.parity import golden


@pytest.fixture(scope="module", params=programs.MODULES)
def version(request: pytest.FixtureRequest) -> str:
    """Return a Kubernetes minor."""
    return str(request.param)


@pytest.fixture(scope="module")
def oracle(version: str) -> Iterator[Oracle]:
    """Run the oracle of a minor."""
    program = programs.find(version)
    if isinstance(program, str):
        # `.ci/run` and `make test-oracle` require it.
        (pytest.fail if os.environ.get("ORACLE") == "required" else pytest.skip)(program)
    with running_oracle(program) as running:
        yield running


def test_it_agrees_with_all_recorded_results(oracle: Oracle, version: str) -> None:
    names = golden.scenario_names(*CATEGORIES)
    assert len(names) == 84
    for name in names:
        answer = oracle.ask(json.loads(golden.read_scenario(name)))
        assert find_answer_differences({"pods": golden.read_results(name, version)}, answer)[:5] == [], name


def test_it_agrees_with_the_cases(oracle: Oracle, version: str) -> None:
    """One of them holds that the dry run for the list of candidates does not change what PostFilter answers."""
    files = sorted(CASES.glob(f"{version}/*.scenario.json"))
    assert files
    for file in files:
        want = json.loads(file.with_name(file.name.replace(".scenario.", ".golden.")).read_text())
        assert find_answer_differences(want, oracle.ask(json.loads(file.read_text())))[:5] == [], file.name


def test_it_goes_on_after_a_scenario_that_it_cannot_read(oracle: Oracle) -> None:
    scenario: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Unknown"}]}
    with pytest.raises(OracleError, match=r"items\[0\]"):
        oracle.ask(scenario)
    assert oracle.ask({**scenario, "items": []}) == {"pods": {}, "podGroups": {}, "events": [], "bindings": {}}


def test_it_names_an_invalid_configuration(oracle: Oracle) -> None:
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v9", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(OracleError, match="config: "):
        oracle.ask({"apiVersion": "v1", "kind": "List", "items": [], "config": configuration})


def test_it_goes_on_after_a_panic_of_kube_scheduler(oracle: Oracle) -> None:
    """NodeResourcesBalancedAllocation panics in 1.36 and 1.37 if a device class serves one of its resources."""
    scenario = json.loads((Path(__file__).parent / "balanced_allocation_panic.json").read_text())
    with pytest.raises(OracleError, match="kube-scheduler panics: runtime error: invalid memory address"):
        oracle.ask(scenario)
    assert oracle.ask({**scenario, "items": []}) == {"pods": {}, "podGroups": {}, "events": [], "bindings": {}}
