"""`extender what-if --sweep`: results, several processes, interruption, configurations and invalid input."""

import json
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.analysis.input.input_errors import InputError
from extender.cli.live.cluster_options import read_cluster
from extender.cli.planning.sweep import load_sweep_cluster, make_sweep_tasks, read_sweep_file
from extender.cli.recording_options import Cluster, InputOptions
from extender.planning.scenario import AddedNodes, Scale, Scenario
from extender.planning.sweep import SweepTask
from tests.unit.planning.clusters import ZONE, as_list, budget, node, pod

Run = Callable[..., tuple[int, str, str]]

SCENARIOS = f"""
scenarios:
- drain: "*"
- lose: {ZONE}=*
- {{name: grow, add: 1, like: "*"}}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    nodes = [node(f"n{number}", "4", zone="ab"[number % 2]) for number in range(4)]
    pods = [pod(f"p{number}", "1500m", on=f"n{number % 4}") for number in range(7)]
    (tmp_path / "c.json").write_text(as_list([*nodes, *pods, pod("waits", "4"), budget("other", {"app": "other"}, 0)]))
    (tmp_path / "s.yaml").write_text(SCENARIOS)
    return str(tmp_path / "c.json"), str(tmp_path / "s.yaml")


def read_lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_each_scenario_is_one_line_that_equals_the_answer_to_it_alone(extender: Run, files: tuple[str, str]) -> None:
    cluster, sweep = files
    status, out, err = extender("what-if", "-f", cluster, "--sweep", sweep, "-o", "json")
    lines = read_lines(out)
    assert (status, err) == (0, "")
    assert [line["scenario"] for line in lines] == [
        *(f"--drain n{number}" for number in range(4)),
        f"--lose {ZONE}=a",
        f"--lose {ZONE}=b",
        "grow: --add 1 --like n0",
    ]
    alone = json.loads(extender("what-if", "-f", cluster, "--drain", "n2", "-o", "json")[1])
    line = {key: value for key, value in lines[2].items() if key not in ("scenario", "config")}
    assert (line.pop("kind"), alone.pop("kind")) == ("SweepResult", "WhatIf")
    assert line == alone


def test_yaml_has_one_document_for_each_scenario(extender: Run, files: tuple[str, str]) -> None:
    cluster, sweep = files
    status, out, err = extender("what-if", "-f", cluster, "--sweep", sweep, "-o", "yaml")
    assert (status, err) == (0, "")
    lines = extender("what-if", "-f", cluster, "--sweep", sweep, "-o", "json")[1]
    assert list(yaml.safe_load_all(out)) == read_lines(lines)


@pytest.mark.parametrize(("cpu", "expected"), [("4", 3), ("100m", 0)], ids=["a pod waits", "all pods fit"])
def test_the_exit_code_says_whether_a_scenario_leaves_a_pod(
    extender: Run, tmp_path: Path, cpu: str, expected: int
) -> None:
    (tmp_path / "c.json").write_text(as_list([node("n0"), node("n1"), pod("p", cpu, on="n0"), pod("q", cpu, on="n1")]))
    (tmp_path / "s.yaml").write_text("scenarios: [{remove: n0}]")
    files = ("-f", str(tmp_path / "c.json"), "--sweep", str(tmp_path / "s.yaml"))
    assert extender("what-if", *files, "--exit-code")[0] == expected
    assert extender("what-if", *files)[0] == 0


def test_two_processes_give_the_same_results_in_the_same_order(extender: Run, files: tuple[str, str]) -> None:
    cluster, sweep = files
    one = extender("what-if", "-f", cluster, "--sweep", sweep, "-o", "json")
    assert extender("what-if", "-f", cluster, "--sweep", sweep, "-o", "json", "--jobs", "2") == one


def test_processes_are_forked_only_without_other_threads(
    extender: Run, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, sweep = files
    methods: list[str] = []

    class Recorder(ProcessPoolExecutor):
        def __init__(self, max_workers: int, mp_context: BaseContext, initializer: Callable[[], None]) -> None:
            methods.append(mp_context.get_start_method() or "")
            super().__init__(max_workers, multiprocessing.get_context("spawn"), initializer)

    monkeypatch.setattr("extender.cli.planning.workers.ProcessPoolExecutor", Recorder)
    for threads in (1, 2):
        monkeypatch.setattr("threading.active_count", lambda threads=threads: threads)
        assert extender("what-if", "-f", cluster, "--sweep", sweep, "--jobs", "2")[0] == 0
    assert methods == ["fork", "spawn"]


def test_an_interrupted_sweep_is_resumed(extender: Run, files: tuple[str, str], tmp_path: Path) -> None:
    cluster, sweep = files
    results = tmp_path / "r.jsonl"
    flags = ("what-if", "-f", cluster, "--sweep", sweep, "--results", str(results))
    status, table, _ = extender(*flags)
    complete = results.read_bytes()
    assert (status, complete.count(b"\n")) == (0, 8)
    marked = complete.splitlines(keepends=True)
    marked[1] = marked[1].replace(b'"config":null', b'"config":null,"kept":true')
    results.write_bytes(b"".join(marked[:4]) + marked[4][:30])
    assert extender(*flags) == (0, table, "")
    assert results.read_bytes() == b"".join(marked)


def test_results_of_other_inputs_are_refused(extender: Run, files: tuple[str, str], tmp_path: Path) -> None:
    cluster, sweep = files
    text = Path(cluster).read_text()
    flags = ("what-if", "-f", "-", "--sweep", sweep, "--results", str(tmp_path / "r.jsonl"))
    first = extender(*flags, stdin=text)
    assert first[0] == 0
    assert extender(*flags, stdin=text) == first
    for other_flags, stdin, names in (
        (flags, text.replace("1500m", "1600m"), "files"),
        ((*flags, "--seed", "3"), text, "flags"),
    ):
        load_sweep_cluster.cache_clear()  # each command has its own process
        message = f"holds the results of other inputs: {names}; delete it, or name another file"
        assert extender(*other_flags, stdin=stdin) == (2, "", f"extender: {tmp_path}/r.jsonl: {message}\n")


def test_each_configuration_decides_by_itself(extender: Run, files: tuple[str, str], tmp_path: Path) -> None:
    cluster, _ = files
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    (tmp_path / "a.yaml").write_text(head)
    (tmp_path / "b.yaml").write_text(f"{head}profiles: [{{schedulerName: other}}]\n")
    (tmp_path / "s.yaml").write_text(f"scenarios: [{{drain: n0}}]\nconfigs: [{tmp_path}/a.yaml, {tmp_path}/b.yaml]\n")
    lines = read_lines(extender("what-if", "-f", cluster, "--sweep", str(tmp_path / "s.yaml"), "-o", "json")[1])
    assert [Path(line["config"]).name for line in lines] == ["a.yaml", "b.yaml"]
    assert [len(line["moved"]) for line in lines] == [1, 0]
    assert lines[1]["waiting"][0]["reasons"] == ['waits for scheduler "default-scheduler", which has no profile']


def test_a_scenario_that_does_not_match_ends_the_sweep_before_it_starts(
    extender: Run, files: tuple[str, str], tmp_path: Path
) -> None:
    cluster, _ = files
    (tmp_path / "s.yaml").write_text("scenarios: [{drain: n0}, {name: odd, drain: m}, {scale: job/x=3}]")
    results = tmp_path / "r.jsonl"
    flags = ["--sweep", str(tmp_path / "s.yaml"), "--results", str(results)]
    assert extender("what-if", "-f", cluster, *flags) == (
        2,
        "",
        "extender: scenario odd: --drain m: there is no such node\n",
    )
    assert not results.exists()


USAGE = {
    "a change beside the sweep": (
        ["--sweep", "s.yaml", "--drain", "n1"],
        "Invalid value for --sweep: name the changes in its file, not on the command line",
    ),
    "results without a sweep": (["--drain", "n1", "--results", "r"], "Invalid value for --results: needs --sweep FILE"),
    "jobs without a sweep": (["--drain", "n1", "--jobs", "2"], "Invalid value for --jobs: needs --sweep FILE"),
    "a negative number of jobs": (["--sweep", "s", "--jobs", "-1"], "Invalid value for --jobs: -1; want 0 to 1024"),
}


@pytest.mark.parametrize(("flags", "message"), USAGE.values(), ids=USAGE.keys())
def test_an_invalid_flag_is_one_clear_line(extender: Run, flags: list[str], message: str) -> None:
    status, out, err = extender("what-if", "-f", "c.json", *flags)
    assert (status, out, err.splitlines()[-1]) == (2, "", f"Error: {message}")


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
