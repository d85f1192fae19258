"""The file of a sweep: its scenarios, names and errors."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.sweep_file import make_sweep_tasks, read_sweep_file
from extender.cli.recording_options import Cluster, InputOptions
from extender.planning.scenario import AddedNodes, Scale, Scenario
from extender.planning.sweep import SweepTask
from tests.unit.planning.clusters import as_list, node


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "c.json").write_text(as_list([node("n1"), node("n2")]))
    return read_cluster([str(tmp_path / "c.json")], InputOptions())


def make_tasks(tmp_path: Path, cluster: Cluster, text: str) -> list[SweepTask]:
    (tmp_path / "s.yaml").write_text(text)
    entries, configs = read_sweep_file(str(tmp_path / "s.yaml"))
    return make_sweep_tasks(entries, len(configs), cluster)


def test_scenarios_are_named_by_their_flags_or_by_their_name(tmp_path: Path, cluster: Cluster) -> None:
    text = """
scenarios:
- drain: "*"
- {name: grow, add: 2, like: n1}
- {name: each, cordon: "*"}
- {scale: job/x=3, namespace: shop, preempt: true}
- {name: grow, drain: [n1, n2]}
"""
    assert make_tasks(tmp_path, cluster, text) == [
        SweepTask("--drain n1", Scenario(drain=("n1",))),
        SweepTask("--drain n2", Scenario(drain=("n2",))),
        SweepTask("grow", Scenario(add=(AddedNodes(2, "n1"),))),
        SweepTask("each: --cordon n1", Scenario(cordon=("n1",))),
        SweepTask("each: --cordon n2", Scenario(cordon=("n2",))),
        SweepTask(
            "--scale job/x=3 --namespace shop --preempt true",
            Scenario(scale=(Scale("job", "shop", "x", 3),), preempt=True),
        ),
        SweepTask("grow #2", Scenario(drain=("n1", "n2"))),
    ]


def test_each_scenario_runs_with_each_configuration(tmp_path: Path, cluster: Cluster) -> None:
    tasks = make_tasks(tmp_path, cluster, "scenarios: [{drain: n1}]\nconfigs: [a.yaml, b.yaml]\n")
    assert [(task.name, task.config_index) for task in tasks] == [("--drain n1", 0), ("--drain n1", 1)]


ERRORS = {
    "no scenarios": ("configs: []", ["scenarios: want a list of scenarios, such as - drain: n1"]),
    "an unknown key": (
        "scenarios: [{drain: n1}]\nconfig: a.yaml",
        ['config: is unknown; want scenarios or configs; did you mean "configs"?'],
    ),
    "a misspelt flag": (
        "scenarios: [{drains: n1}]",
        ['scenarios[0].drains: is no flag of a scenario; did you mean "drain"?'],
    ),
    "values of other types": (
        "scenarios: [{drain: 1, preempt: 5}, {add: many}, 7, {cordon: []}]",
        [
            "scenarios[0].drain: want text, or a list of texts",
            "scenarios[0].preempt: want true or false",
            "scenarios[1].add: want a number",
            "scenarios[2]: want the flags of what-if without dashes, such as drain: n1",
            "scenarios[3].cordon: want text, or a list of texts",
        ],
    ),
    "a configuration that is no name": (
        "scenarios: [{drain: n1}]\nconfigs: [1]",
        ["configs: want a list of file names"],
    ),
}


@pytest.mark.parametrize(("text", "lines"), ERRORS.values(), ids=ERRORS.keys())
def test_each_error_is_one_line_with_the_path(tmp_path: Path, text: str, lines: list[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_sweep_file(str(file))
    assert [str(line) for line in caught.value.errors] == [f"{file}: {line}" for line in lines]
