"""The table of the scenarios of a sweep."""

from typing import Any

from extender.planning.sweep import SweepRow, format_sweep_table, make_sweep_row


def make_values(name: str, config: str | None, waiting: list[bool], moved: int) -> dict[str, Any]:
    return {
        "scenario": name,
        "config": config,
        "waiting": [{"wasWaiting": was_waiting} for was_waiting in waiting],
        "blocked": [{}],
        "lost": [],
        "evicted": [],
        "moved": [{}] * moved,
        "after": {"resources": {"cpu": {"requested": 1, "allocatable": 4}}},
    }


def test_a_row_counts_only_pods_that_are_newly_left_without_a_node() -> None:
    row = make_sweep_row(make_values("a", "b.yaml", [True, False, False], 3))
    assert row == SweepRow("a --config b.yaml", waiting=2, blocked=1, lost=0, evicted=0, moved=3, cpu=(1, 4))
    assert make_sweep_row(make_values("a", None, [], 0)).scenario == "a"


def test_the_worst_scenarios_are_first() -> None:
    rows = [
        SweepRow("calm", 0, 0, 0, 0, 9, (1, 4)),
        SweepRow("bad", 2, 0, 0, 0, 0, (2, 4)),
        SweepRow("blocked", 0, 1, 0, 0, 0, (3, 4)),
    ]
    assert format_sweep_table(rows) == (
        "3 scenarios; 1 leaves every pod on a node.\n"
        "\n"
        "SCENARIO  LEFT  BLOCKED  LOST  EVICTED  MOVED  CPU\n"
        "bad          2        0     0        0      0  50%\n"
        "blocked      0        1     0        0      0  75%\n"
        "calm         0        0     0        0      9  25%\n"
    )


def test_a_long_table_is_cut_after_twenty_rows() -> None:
    rows = [SweepRow(f"s{number:02}", 0, 0, 0, 0, 0, (0, 0)) for number in range(22)]
    lines = format_sweep_table(rows).splitlines()
    assert (lines[0], lines[-2].split()[0], lines[-1]) == (
        "22 scenarios; 22 leave every pod on a node.",
        "s19",
        "and 2 scenarios more",
    )
