"""`extender compare`: the second configuration, the titles of the columns, and invalid input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.planning.clusters import as_list, node, pod

Run = Callable[..., tuple[int, str, str]]

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    (tmp_path / "most.yaml").write_text(MOST_ALLOCATED)
    path = tmp_path / "c.json"
    path.write_text(as_list([node("full"), node("empty"), pod("a", "2", on="full"), pod("b")]))
    return str(path)


def test_the_pending_pods_are_placed_with_both_configurations(extender: Run, cluster: str, tmp_path: Path) -> None:
    status, out, err = extender("compare", "-f", cluster, "--with-config", str(tmp_path / "most.yaml"), "-o", "json")
    assert (status, err) == (0, "")
    values = json.loads(out)
    assert [(entry["pod"], entry["first"]["node"], entry["second"]["node"]) for entry in values["different"]] == [
        ("default/b", "empty", "full")
    ]


def test_all_pods_of_controllers_are_placed_again(extender: Run, cluster: str) -> None:
    flags = ("--emulated-version", "1.36", "--with-emulated-version", "1.37", "--all-pods")
    status, out, err = extender("compare", "-f", cluster, *flags)
    assert (status, err) == (0, "")
    assert out.startswith("2 pods, no difference.\n\nTotals\n")
    assert out.splitlines()[3].split() == ["1.36", "1.37"]


def test_without_a_second_configuration_there_is_nothing_to_compare(extender: Run, cluster: str) -> None:
    status, out, err = extender("compare", "-f", cluster)
    assert (status, out) == (2, "")
    assert "nothing to compare with; name a configuration or a release" in err


def test_an_invalid_second_configuration_is_one_line(extender: Run, cluster: str) -> None:
    status, out, err = extender("compare", "-f", cluster, "--with-config", "missing.yaml")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "missing.yaml" in err


def test_an_error_of_the_second_release_names_its_flag(extender: Run, cluster: str) -> None:
    line = "extender: --with-emulated-version: 1.35 cannot be emulated; want 1.36 or 1.37\n"
    assert extender("compare", "-f", cluster, "--with-emulated-version", "1.35") == (2, "", line)


def test_an_error_of_the_gates_of_both_configurations_names_both_flags(extender: Run, cluster: str) -> None:
    """The gate ended with 1.36."""
    flags = ["--emulated-version", "1.36", "--feature-gates", "SchedulerQueueingHints=true"]
    flags += ["--with-emulated-version", "1.37"]
    error = "unrecognized feature gate: SchedulerQueueingHints; it exists in 1.36"
    hint = "the second configuration has the same gates without --with-feature-gates"
    assert extender("compare", "-f", cluster, *flags) == (2, "", f"extender: --feature-gates: {error}; {hint}\n")
    flags += ["--with-feature-gates", "SchedulerQueueingHints=false"]
    assert extender("compare", "-f", cluster, *flags) == (2, "", f"extender: --with-feature-gates: {error}\n")


def test_both_configurations_are_of_the_recorded_release(extender: Run, tmp_path: Path) -> None:
    """In 1.36, the extension point podGroupPostFilter does not exist."""
    recording = json.loads(as_list([node("n"), pod("a")])) | {"kubernetesVersion": "v1.36.3"}
    (tmp_path / "c.json").write_text(json.dumps(recording))
    config = tmp_path / "config.yaml"
    config.write_text(MOST_ALLOCATED.replace("plugins: {", "plugins: {podGroupPostFilter: {disabled: [{name: X}]}, "))
    status, _, err = extender("compare", "-f", str(tmp_path / "c.json"), "--with-config", str(config))
    assert (status, 'unknown field "podGroupPostFilter"' in err) == (2, True)
