"""`extender experiment`: table, JSON lines, CSV, curves, saved runs, and one line for each mistake."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

from extender.cli import experiment
from extender.cli.terminal import ProgressBar
from extender.experiments.published_results import TRACE_FIGURES, measure_trace
from extender.plugins.gpu_share.plugin import GpuShare
from extender.testing import make_node
from tests.unit.experiments.small_trace import small_trace, small_trace_text
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "small.json"
    path.write_text(small_trace_text())
    return str(path)


def test_the_table_has_a_line_for_each_policy(extender: Command, trace: str) -> None:
    status, out, err = extender("experiment", "--trace", trace, "--policy", "FGD,Fill", "--seeds", "1-2")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["POLICY", "FGD", "Fill"]
    assert out.splitlines()[-2].endswith("means of 2 seeds.")


def test_the_table_has_the_published_results_of_a_variant(
    extender: Command, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRACE_FIGURES, "cpu200", measure_trace(small_trace()))
    arguments = ("--trace", trace, "--policy", "BestFit,Fill", "--seeds", "1", "--published", "cpu200")
    status, out, err = extender("experiment", *arguments)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[2].split() == ["BestFit,", "published", "80.00", "89.99", "92.15", "92.24", "92.40"]
    assert lines[5].split() == ["FGD,", "published", "80.00", "89.99", "94.82", "94.91", "95.05"]


def test_published_results_of_another_trace_are_refused(
    extender: Command, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, err = extender("experiment", "--trace", trace, "--published", "cpu200")
    want = (
        "Error: Invalid value for --published: the trace is not this variant of openb, which has 8,832 pods, 0 of them "
        "with GPU models, that request 6,086.80 of 6,212 GPUs. "
    )
    has = "It has 40 pods, 0 of them with GPU models, that request 31.38 of 16 GPUs"
    assert (status, out, err.splitlines()[-1]) == (2, "", want + has)
    monkeypatch.setitem(TRACE_FIGURES, "gpuspec33", measure_trace(small_trace()))
    err = extender("experiment", "--trace", trace, "--published", "cpu200")[2]
    assert err.splitlines()[-1] == want + "It is the variant gpuspec33"


@pytest.mark.parametrize(
    ("raised", "status", "lines"),
    [
        (KeyboardInterrupt(), 130, []),
        (ChildProcessError("a process was killed"), 1, ["extender: a process was killed"]),
    ],
    ids=["Ctrl-C", "a killed process"],
)
def test_the_finished_runs_are_shown_after_an_interruption(
    extender: Command,
    trace: str,
    monkeypatch: pytest.MonkeyPatch,
    raised: BaseException,
    status: int,
    lines: list[str],
) -> None:
    run_task = experiment.run_task

    def run_or_fail(source: Any, task: Any, on_progress: Any) -> Any:
        if task[1] == 3:
            raise raised
        return run_task(source, task, on_progress)

    monkeypatch.setattr(experiment, "run_task", run_or_fail)
    code, out, err = extender("experiment", "--trace", trace, "--policy", "FGD,Fill", "--seeds", "1-4")
    note = "extender: note: stopped after 2 of 8 runs; equal seeds give equal results"
    assert (code, err.splitlines()) == (status, [note, *lines])
    assert [line.split()[0] for line in out.splitlines()[:2]] == ["POLICY", "FGD"]
    assert out.splitlines()[-2].endswith("means of 2 seeds.")


def test_a_full_disk_is_named_with_its_file(extender: Command, trace: str) -> None:
    arguments = ("--policy", "Fill", "--seeds", "1", "-o", "jsonl", "--curves", "/dev/full")
    status, _, err = extender("experiment", "--trace", trace, *arguments)
    assert (status, err.splitlines()[-1]) == (1, "extender: /dev/full: No space left on device")


@pytest.mark.parametrize("flag", ["--curves", "--plots", "--plans"])
def test_an_output_that_cannot_be_created_is_named_before_the_runs(extender: Command, trace: str, flag: str) -> None:
    status, out, err = extender("experiment", "--trace", trace, "--moves", "1", flag, f"{trace}/below")
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == f"Error: Invalid value for {flag}: {trace}/below: Not a directory"


def test_json_lines_have_policy_seed_allocation_and_seconds(extender: Command, trace: str, tmp_path: Path) -> None:
    curves = tmp_path / "curves.jsonl"
    arguments = ("--trace", trace, "--policy", "Fill", "--seeds", "7,3-4", "-o", "jsonl", "--curves", str(curves))
    status, out, _ = extender("experiment", *arguments)
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [line["seed"] for line in lines] == [7, 3, 4]
    assert all(
        list(line) == ["schemaVersion", "kind", "policy", "seed", "allocated_percent", "seconds"] for line in lines
    )
    assert set(lines[0]["allocated_percent"]) <= {"80", "90", "100", "110", "130"}
    curve = json.loads(curves.read_text().splitlines()[0])
    assert len(curve["arrived_percent"]) == len(curve["allocated_percent"]) == len(curve["waiting_pods"])


def read_allocations(out: str) -> list[tuple[str, int, dict[str, float]]]:
    """Return the policy, the seed and the allocation of each line."""
    lines = [json.loads(line) for line in out.splitlines()]
    return [(line["policy"], line["seed"], line["allocated_percent"]) for line in lines]


def test_csv_has_a_line_for_each_per_cent_of_arrived_demand(extender: Command, trace: str, tmp_path: Path) -> None:
    curves = tmp_path / "curves.jsonl"
    arguments = ("--trace", trace, "--policy", "FGD,Fill", "--seeds", "1", "-o", "csv", "--curves", str(curves))
    status, out, err = extender("experiment", *arguments)
    head, *rows = list(csv.reader(out.splitlines()))
    fragmented = [f"fragmented_percent_{cause}" for cause in ("no_gpu_requested", "gpu_model", "gpu", "cpu")]
    last = "fragmented_percent_gpu_and_cpu"
    assert (status, err) == (0, "")
    assert head == ["policy", "seed", "arrived_percent", "allocated_percent", "waiting_pods", *fragmented, last]
    curve = json.loads(curves.read_text().splitlines()[1])
    fill_rows = [row for row in rows if row[:2] == ["Fill", "1"]]
    assert [int(row[2]) for row in fill_rows] == curve["arrived_percent"]
    assert [float(row[3]) for row in fill_rows] == curve["allocated_percent"]
    assert [int(row[4]) for row in fill_rows] == curve["waiting_pods"]
    measured = {row[2]: row[7] for row in fill_rows if row[7]}
    assert {demand: float(percent) for demand, percent in measured.items()} == {
        demand: by_cause["gpu"] for demand, by_cause in curve["fragmented_percent"].items() if demand in measured
    }
    assert measured


def count_runs(monkeypatch: pytest.MonkeyPatch, fail_at: int = 0) -> list[tuple[str, int]]:
    """Return a list to which each run is added; the run with the number *fail_at* is interrupted."""
    run_task, started = experiment.run_task, list[tuple[str, int]]()

    def run_or_fail(source: Any, task: Any, on_progress: Any) -> Any:
        started.append((task[0].name, task[1]))
        if len(started) == fail_at:
            raise KeyboardInterrupt
        return run_task(source, task, on_progress)

    monkeypatch.setattr(experiment, "run_task", run_or_fail)
    return started


def test_an_interrupted_experiment_continues_where_it_ended(
    extender: Command, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.jsonl"
    arguments = ("experiment", "--trace", trace, "--policy", "FGD,Fill", "--seeds", "1-2", "-o", "jsonl")
    alone = read_allocations(extender(*arguments)[1])
    with monkeypatch.context() as patch:
        count_runs(patch, fail_at=4)
        status, _, err = extender(*arguments, "--results", str(results))
        note = "extender: note: stopped after 3 of 4 runs; the same command continues\n"
        assert (status, err) == (130, note)
    with results.open("r+b") as file:
        file.truncate(results.stat().st_size - 9)  # the machine stopped in the middle of the third line
    started = count_runs(monkeypatch)
    status, out, err = extender(*arguments, "--results", str(results))
    assert (status, err, read_allocations(out)) == (0, "", alone)
    assert started == [("Fill", 1), ("Fill", 2)]


def test_a_policy_that_raises_is_no_internal_error(
    extender: Command, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *arguments: Any) -> Any:
        raise KeyError("zone")

    monkeypatch.setattr(GpuShare, "score", fail)
    status, out, err = extender("experiment", "--trace", trace, "--policy", "FGD", "--seeds", "1")
    assert (status, out) == (1, "")
    note, line = err.splitlines()
    assert note == "extender: note: stopped after 0 of 1 runs; equal seeds give equal results"
    assert re.fullmatch(
        r"extender: policy FGD, pod \S+: running Score plugins: plugin \"GpuShare\" failed with: KeyError: 'zone'", line
    )


def test_policies_and_seeds_can_be_added_to_saved_runs(
    extender: Command, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("experiment", "--trace", trace, "--results", str(tmp_path / "results.jsonl"), "-o", "jsonl")
    extender(*arguments, "--policy", "FGD", "--seeds", "1-2")
    started = count_runs(monkeypatch)
    out = extender(*arguments, "--policy", "Fill,FGD", "--seeds", "2-3")[1]
    assert started == [("Fill", 2), ("Fill", 3), ("FGD", 3)]
    assert [run[:2] for run in read_allocations(out)] == [("Fill", 2), ("Fill", 3), ("FGD", 2), ("FGD", 3)]


def test_runs_of_a_changed_plugin_are_made_again(
    extender: Command, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--trace", trace, "--results", str(tmp_path / "r.jsonl"), "--policy", "ImageLocality,FGD")
    monkeypatch.setattr(experiment, "make_plugin_digest", lambda: "first version")
    extender("experiment", *arguments, "--seeds", "1")
    started = count_runs(monkeypatch)
    extender("experiment", *arguments, "--seeds", "1")
    assert started == []
    monkeypatch.setattr(experiment, "make_plugin_digest", lambda: "second version")
    extender("experiment", *arguments, "--seeds", "1")
    assert started == [("ImageLocality", 1)]


def test_saved_runs_of_another_trace_are_refused_before_the_runs(
    extender: Command, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.jsonl"
    extender("experiment", "--trace", trace, "--results", str(results), "--policy", "FGD", "--seeds", "1")
    changed = tmp_path / "changed.json"
    changed.write_text(Path(trace).read_text().replace('"32"', '"16"'))
    started = count_runs(monkeypatch)
    status, out, err = extender("experiment", "--trace", str(changed), "--results", str(results))
    message = "holds the results of other inputs: trace; delete it, or name another file"
    assert (status, out, err) == (2, "", f"extender: {results}: {message}\n")
    assert started == []


def test_plans_without_moves_are_an_error(extender: Command, trace: str, tmp_path: Path) -> None:
    status, out, err = extender("experiment", "--trace", trace, "--plans", str(tmp_path))
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == "Error: Invalid value for --plans: needs --moves PERCENT"


def test_several_processes_give_the_results_of_one_in_the_same_order(extender: Command, trace: str) -> None:
    arguments = ("experiment", "--trace", trace, "--policy", "FGD,Fill", "--seeds", "3-4", "-o", "jsonl")
    alone = read_allocations(extender(*arguments)[1])
    assert [(policy, seed) for policy, seed, _ in alone] == [("FGD", 3), ("FGD", 4), ("Fill", 3), ("Fill", 4)]
    status, out, _ = extender(*arguments, "--jobs", "2")
    assert (status, read_allocations(out)) == (0, alone)


def test_the_workers_of_dask_give_the_results_of_one_process(extender: Command, trace: str) -> None:
    arguments = ("experiment", "--trace", trace, "--policy", "FGD,Fill", "--seeds", "3", "-o", "jsonl")
    alone = read_allocations(extender(*arguments)[1])
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address="127.0.0.1:0", host="127.0.0.1") as cluster:
        status, out, _ = extender(*arguments, "--scheduler-address", cluster.scheduler_address)
    assert (status, read_allocations(out)) == (0, alone)


def test_plots_are_written_to_the_directory_and_named(extender: Command, trace: str, tmp_path: Path) -> None:
    plots = tmp_path / "new" / "plots"
    status, _, err = extender("experiment", "--trace", trace, "--policy", "Fill", "--seeds", "1", "--plots", str(plots))
    names = ("allocation.svg", "waiting.svg", "fragmentation.svg")
    assert (status, err.splitlines()) == (0, [f"wrote {plots / name}" for name in names])
    assert all((plots / name).read_text().startswith("<?xml") for name in names)


def test_a_file_in_place_of_the_directory_of_plots_is_named_before_the_runs(extender: Command, trace: str) -> None:
    status, out, err = extender("experiment", "--trace", trace, "--plots", trace)
    assert (status, out) == (2, "")
    assert f"Invalid value for --plots: {trace}: File exists" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "FDG"), 'Invalid value for --policy: there is no policy "FDG"; did you mean FGD?'),
        (("--policy", ","), "Invalid value for --policy: want at least one name"),
        (("--seeds", "5-3"), 'Invalid value for --seeds: want 1 to 10,000 seeds, the lowest first, got "5-3"'),
        (("--seeds", "a"), 'Invalid value for --seeds: want numbers and ranges such as 42-51, got "a"'),
        (
            ("--published", "openb"),
            "Invalid value for --published: want one of default, gpuspec33, gpushare100, multigpu50, cpu200, "
            'got "openb"',
        ),
        (("--jobs", "-1"), "Invalid value for --jobs: -1; want 0 to 1024"),
        (
            ("--jobs", "2", "--scheduler-address", "tcp://a:1"),
            "Invalid value for --scheduler-address: contradicts --jobs; the workers of Dask run the experiments",
        ),
        (("--scheduler-address", "a"), "Invalid value for --scheduler-address: 'a' is no address of a Dask scheduler"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(
    extender: Command, trace: str, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = extender("experiment", "--trace", trace, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert "stopped after" not in err


def test_a_recording_without_gpus_is_named_in_one_line(extender: Command, tmp_path: Path) -> None:
    path = tmp_path / "no-gpus.json"
    path.write_text(json.dumps(make_node("cpu-only")))
    status, out, err = extender("experiment", "--trace", str(path))
    assert (status, out) == (2, "")
    assert "no-gpus.json: no node has the allocatable resource alibabacloud.com/gpu-count" in err


def test_a_trace_with_an_object_twice_is_refused_without_an_option_that_the_command_lacks(
    extender: Command, tmp_path: Path
) -> None:
    node = json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "1"}})
    (tmp_path / "a.json").write_text(node)
    (tmp_path / "b.json").write_text(node)
    status, _, err = extender("experiment", "--trace", str(tmp_path))
    message = f"Node n1: is defined twice; the first definition is in {tmp_path}/a.json; keep one of them"
    assert (status, err) == (2, f"extender: {tmp_path}/b.json: {message}\n")


def test_the_bars_advance_within_a_run_and_its_moves(
    extender: Command, trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[tuple[str, float]]()

    class RecordedBar(ProgressBar):
        def show(self, done: float, total: int) -> None:
            shown.append((self._noun, done / total))

    monkeypatch.setattr(experiment, "ProgressBar", RecordedBar)
    extender("experiment", "--trace", trace, "--policy", "Random", "--seeds", "3-4", "--moves", "50")
    for noun in ("runs", "runs with moves"):
        parts = [part for name, part in shown if name == noun]
        assert parts == sorted(parts)
        assert (parts[0], parts[-1]) == (0, 1)
        assert len({part for part in parts if 0 < part < 0.5}) > 10


def test_several_processes_make_the_moves_of_one(extender: Command, trace: str) -> None:
    arguments = ("experiment", "--trace", trace, "--policy", "Random,FGD", "--seeds", "3-4", "--moves", "50")
    lines = extender(*arguments)[2].splitlines()
    runs = ["Random, seed 3", "Random, seed 4", "FGD, seed 3", "FGD, seed 4"]
    assert [line.partition(":")[0] for line in lines] == runs
    assert extender(*arguments, "--jobs", "2")[2].splitlines() == lines


def test_pods_that_can_never_be_placed_are_named_before_the_runs(extender: Command, tmp_path: Path) -> None:
    """The memory of the second pod is in bytes that were taken for MiB."""
    big_pod = shared_pod("b", 500)
    big_pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "8589934592Mi"
    objects = [gpu_node("n", gpus=2, cpu="32"), shared_pod("a", 500), big_pod]
    path = tmp_path / "units.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    status, _, err = extender("experiment", "--trace", str(path), "--seeds", "1")
    note = "extender: note: 1 of 2 pods can never be placed; default/b on the empty cluster: "
    assert (status, err) == (0, f"{note}0/1 nodes are available: 1 Insufficient memory.\n")
