"""The results of an experiment as JSON values, as rows of CSV and as a table."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Final

from extender.analysis.text_table import format_count, format_table
from extender.answers.schema_version import AnswerKind, make_answer
from extender.experiments.defragmentation import Defragmentation
from extender.experiments.fragmentation_causes import Cause
from extender.experiments.published_results import PUBLISHED_PERCENTS, REFERENCE_POLICY
from extender.experiments.runner import REPORTED_DEMAND_PERCENTS, Run

CSV_COLUMNS: Final = (
    "policy",
    "seed",
    "arrived_percent",
    "allocated_percent",
    "waiting_pods",
    *(f"fragmented_percent_{cause.value}" for cause in Cause),
)
"""The fragmentation is only measured at each tenth per cent of arrived demand; otherwise its columns are empty."""


def make_run_values(run: Run) -> dict[str, Any]:
    """Return the JSON values of a run: the allocated per cent at each of `REPORTED_DEMAND_PERCENTS`."""
    values = {
        "policy": run.policy,
        "seed": run.seed,
        "allocated_percent": {
            str(demand_percent): run.allocated_percent[demand_percent]
            for demand_percent in REPORTED_DEMAND_PERCENTS
            if demand_percent in run.allocated_percent
        },
        "seconds": run.seconds,
    }
    return make_answer(AnswerKind.EXPERIMENT_RUN, values)


def make_curve_values(run: Run) -> dict[str, Any]:
    """Return the JSON values of a run's curves: one entry for each whole per cent of arrived demand.

    `fragmented_percent` has an object for each tenth per cent: the fragmented part of the GPUs by cause.
    """
    demand_percents = sorted(run.allocated_percent)
    values = {
        "policy": run.policy,
        "seed": run.seed,
        "arrived_percent": demand_percents,
        "allocated_percent": [run.allocated_percent[demand_percent] for demand_percent in demand_percents],
        "waiting_pods": [run.waiting_pods[demand_percent] for demand_percent in demand_percents],
        "fragmented_percent": {
            str(demand_percent): {cause.value: percent for cause, percent in by_cause.items()}
            for demand_percent, by_cause in run.fragmented_percent.items()
        },
    }
    return make_answer(AnswerKind.EXPERIMENT_CURVE, values)


def make_csv_rows(run: Run) -> list[list[object]]:
    """Return a row with the columns `CSV_COLUMNS` for each whole per cent of arrived demand."""
    rows: list[list[object]] = []
    for demand_percent, allocated_percent in sorted(run.allocated_percent.items()):
        fragmented_percent = run.fragmented_percent.get(demand_percent, {})
        causes = [fragmented_percent.get(cause) for cause in Cause]
        rows.append(
            [run.policy, run.seed, demand_percent, allocated_percent, run.waiting_pods[demand_percent], *causes]
        )
    return rows


def format_report(runs: Sequence[Run], variant: str = "") -> str:
    """Return a table with a line for each policy: the means over the seeds, and the range at 100 %.

    With *variant*, a key of `PUBLISHED_PERCENTS`, two lines follow each policy: the published means and the differences
    from them. A policy that is not published is compared with `REFERENCE_POLICY`.
    """
    names = list(dict.fromkeys(run.policy for run in runs))
    demand_titles = (f"{demand_percent} %" for demand_percent in REPORTED_DEMAND_PERCENTS)
    head = ["POLICY", *demand_titles, "RANGE AT 100 %", "SECONDS"]
    rows = [head]
    for name in names:
        policy_runs = [run for run in runs if run.policy == name]
        means = _compute_means(policy_runs)
        rows.append(_format_policy(name, means, policy_runs))
        if variant:
            rows += _format_comparison(name, means, PUBLISHED_PERCENTS[variant])
    seeds = len({run.seed for run in runs})
    lines = format_table(rows, right_aligned=range(1, len(head)))
    lines += ["", f"Allocated part of the GPUs by arrived demand: means of {format_count(seeds, 'seed')}."]
    if any(demand_percent not in run.allocated_percent for run in runs for demand_percent in REPORTED_DEMAND_PERCENTS):
        lines.append("Without seeds in which no pod arrived within half a per cent of a demand (-: all); see -o csv.")
    return "\n".join([*lines, ""])


def _compute_means(runs: Sequence[Run]) -> list[float | None]:
    """Return the mean allocation at each of `REPORTED_DEMAND_PERCENTS`, or None where no run has a value."""
    values = [
        [run.allocated_percent[demand_percent] for run in runs if demand_percent in run.allocated_percent]
        for demand_percent in REPORTED_DEMAND_PERCENTS
    ]
    return [mean(column_values) if column_values else None for column_values in values]


def _format_policy(name: str, means: Sequence[float | None], runs: Sequence[Run]) -> list[str]:
    at_100 = [run.allocated_percent[100] for run in runs if 100 in run.allocated_percent]
    value_range = f"{min(at_100):.2f} to {max(at_100):.2f}" if at_100 else "-"
    cells = ["-" if value is None else f"{value:.2f}" for value in means]
    return [name, *cells, value_range, f"{mean(run.seconds for run in runs):.1f}"]


def _format_comparison(
    name: str, means: Sequence[float | None], published: Mapping[str, Sequence[float]]
) -> list[list[str]]:
    reference = name if name in published else REFERENCE_POLICY
    expected = published[reference]
    differences = [
        "-" if value is None else f"{value - percent:+.2f}" for value, percent in zip(means, expected, strict=True)
    ]
    return [[f"  {reference}, published", *(f"{percent:.2f}" for percent in expected)], ["  difference", *differences]]


def format_defragmentation(result: Defragmentation) -> str:
    """Return a line with the allocation before and after the moves of a run."""
    plan = result.plan
    placed = len(plan.pods) - len(plan.unplaced)
    return (
        f"{result.policy}, seed {result.seed}: {result.before:.2f} % of the GPUs at 100 % demand, {result.after:.2f} % "
        f"after {format_count(plan.proof.moves, 'move')} of {result.pod_count:,} pods; "
        f"{format_count(placed, 'waiting pod')} of {len(plan.pods):,} placed"
    )
