"""The results as JSON values and as a table."""

from extender.experiments.fragmentation_causes import Cause
from extender.experiments.report import format_report, make_curve_values, make_run_values
from extender.experiments.runner import Run

RUNS = [
    Run("FGD", 42, {79: 79.0, 80: 80.02, 90: 89.98, 100: 95.23, 110: 95.3, 130: 95.39}, {79: 0, 130: 300}, {}, 4.26),
    Run("FGD", 43, {80: 80.0, 90: 90.0, 100: 95.01, 110: 95.1, 130: 95.2}, {}, {}, 4.0),
    Run("Fill", 42, {80: 80.0, 90: 90.0, 100: 95.8}, {}, {}, 6.0),
]


def test_a_line_has_the_columns_of_the_published_table() -> None:
    assert make_run_values(RUNS[0]) == {
        "schemaVersion": "1.0",
        "kind": "ExperimentRun",
        "policy": "FGD",
        "seed": 42,
        "allocated_percent": {"80": 80.02, "90": 89.98, "100": 95.23, "110": 95.3, "130": 95.39},
        "seconds": 4.26,
    }


def test_a_curve_has_an_entry_for_each_per_cent() -> None:
    fragmented = {10: {Cause.GPU: 1.5, Cause.CPU: 0.25}}
    run = Run("FGD", 42, {2: 2.0, 1: 1.0}, {1: 0, 2: 3}, fragmented, 4.0)
    assert make_curve_values(run) == {
        "schemaVersion": "1.0",
        "kind": "ExperimentCurve",
        "policy": "FGD",
        "seed": 42,
        "arrived_percent": [1, 2],
        "allocated_percent": [1.0, 2.0],
        "waiting_pods": [0, 3],
        "fragmented_percent": {"10": {"gpu": 1.5, "cpu": 0.25}},
    }


def test_the_table_has_means_and_the_range_of_each_policy() -> None:
    assert format_report(RUNS).splitlines() == [
        "  POLICY   80 %   90 %  100 %  110 %  130 %  RANGE AT 100 %  SECONDS",
        "  FGD     80.01  89.99  95.12  95.20  95.30  95.01 to 95.23      4.1",
        "  Fill    80.00  90.00  95.80      -      -  95.80 to 95.80      6.0",
        "",
        "Allocated part of the GPUs by arrived demand: means of 2 seeds.",
        "Without seeds in which no pod arrived within half a per cent of a demand (-: all); see -o csv.",
    ]
    assert format_report(RUNS[:2]).splitlines()[-1] == "Allocated part of the GPUs by arrived demand: means of 2 seeds."


def test_the_table_says_that_some_means_are_of_fewer_seeds() -> None:
    """With few GPUs, the mean at 100 % was lower than at 90 %, because it was of other seeds."""
    runs = [RUNS[0], Run("FGD", 43, {80: 80.0, 90: 90.0, 110: 95.1, 130: 95.2}, {}, {}, 4.0)]
    assert format_report(runs).splitlines()[1:] == [
        "  FGD     80.01  89.99  95.23  95.20  95.30  95.23 to 95.23      4.1",
        "",
        "Allocated part of the GPUs by arrived demand: means of 2 seeds.",
        "Without seeds in which no pod arrived within half a per cent of a demand (-: all); see -o csv.",
    ]


def test_each_policy_is_followed_by_the_published_means_and_the_differences() -> None:
    assert format_report(RUNS, "default").splitlines()[:7] == [
        "  POLICY             80 %   90 %  100 %  110 %  130 %  RANGE AT 100 %  SECONDS",
        "  FGD               80.01  89.99  95.12  95.20  95.30  95.01 to 95.23      4.1",
        "    FGD, published  80.02  89.98  95.23  95.30  95.39",
        "    difference      -0.01  +0.01  -0.11  -0.10  -0.09",
        "  Fill              80.00  90.00  95.80      -      -  95.80 to 95.80      6.0",
        "    FGD, published  80.02  89.98  95.23  95.30  95.39",
        "    difference      -0.02  +0.02  +0.57      -      -",
    ]
