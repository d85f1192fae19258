"""The plots: a curve for each policy, causes of fragmentation, and equal files for equal runs."""

import re
from pathlib import Path

import pytest

from extender.experiments import plots
from extender.experiments.fragmentation_causes import Cause
from extender.experiments.plots import MatplotlibMissingError, check_matplotlib, write_plots
from extender.experiments.policies import Policy
from extender.experiments.runner import Run, run_experiment
from tests.unit.experiments.small_trace import small_trace

FRAGMENTED = {10: dict.fromkeys(Cause, 1.0), 20: dict.fromkeys(Cause, 2.0)}
RUNS = [
    Run("FGD", 1, {80: 80.0, 100: 95.0}, {80: 0, 100: 9}, FRAGMENTED, 1.0),
    Run("FGD", 2, {80: 80.0, 100: 96.0}, {80: 0, 100: 7}, FRAGMENTED, 1.0),
    Run("Fill", 1, {80: 80.0, 100: 97.0}, {80: 0, 100: 3}, FRAGMENTED, 1.0),
]


def list_texts(file: Path) -> list[str]:
    """Return the texts of an SVG file; matplotlib writes each as a comment before its glyphs."""
    return re.findall(r"<!-- (.*?) -->", file.read_text())


def test_each_plot_names_every_policy(tmp_path: Path) -> None:
    paths = write_plots(RUNS, tmp_path / "plots")
    assert [path.name for path in paths] == ["allocation.svg", "waiting.svg", "fragmentation.svg"]
    for path in paths:
        assert {"FGD", "Fill", "arrived demand, % of the GPUs"} <= set(list_texts(path))
    assert "all that arrived" in list_texts(paths[0])
    assert "waiting pods" in list_texts(paths[1])
    assert {"too little free CPU", "another GPU model"} <= set(list_texts(paths[2]))


def test_the_second_of_two_equal_curves_is_dashed_so_that_both_are_seen(tmp_path: Path) -> None:
    equal = [Run(policy, 1, {80: 80.0, 100: 95.0}, {80: 0, 100: 9}, FRAGMENTED, 1.0) for policy in ("BestFit", "FGD")]
    for path in write_plots(equal, tmp_path)[:2]:
        curves = re.findall(r'<path d="[^"]*" clip-path="[^"]*" style="([^"]*)"', path.read_text())
        assert ["stroke-dasharray" in style for style in curves[:2]] == [False, True], path.name


def test_the_lowest_panel_of_each_column_has_numbers(tmp_path: Path) -> None:
    runs = [Run(f"Policy{number}", 1, {80: 80.0}, {80: 0}, FRAGMENTED, 1.0) for number in range(4)]
    texts = list_texts(write_plots(runs, tmp_path)[2])
    assert texts.count("15.0") == 3  # a number of each column


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    runs = [run_experiment(small_trace(), Policy("Fill"), seed) for seed in (1, 2)]
    first, second = (write_plots(runs, tmp_path / name) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_an_error_with_the_file_and_leaves_no_part_of_a_plot(tmp_path: Path) -> None:
    (tmp_path / "waiting.svg").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_plots(RUNS, tmp_path)
    assert caught.value.filename == str(tmp_path / "waiting.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["allocation.svg"]


def test_without_matplotlib_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "find_spec", {"matplotlib": None}.get)
    with pytest.raises(MatplotlibMissingError, match=r"pip install 'kube-scheduler-extender\[plots\]'"):
        check_matplotlib()
