"""Draw the plots and write the table of docs/benchmarks.md from the output lines of the benchmarks.

    python docs/draw_benchmarks.py

`tests/bench/suite.py --record docs/benchmarks.jsonl` adds lines. The median of lines with the same labels is used.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

DOCS = Path(__file__).resolve().parent
LINES, PAGE, PLOTS = DOCS / "benchmarks.jsonl", DOCS / "benchmarks.md", DOCS / "plots"
BEGIN, END = "<!-- written by docs/draw_benchmarks.py -->\n", "<!-- end -->\n"
LABELS = ("benchmark", "workload", "case", "verb", "curve", "every_node", "nodes", "pods", "pending", "by")
WORKLOADS = {
    "basic": "plain", "mixedshapes": "all different", "nodeaffinity": "node affinity",
    "podaffinity": "required affinity", "antiaffinity": "required anti-affinity",
    "prefaffinity": "preferred affinity", "prefantiaffinity": "preferred anti-affinity",
    "spread": "hard spread", "prefspread": "soft spread",
}  # fmt: skip
WAYS = {
    "called": "kube-scheduler with the extender, filter and prioritize",
    "best": "kube-scheduler with the extender, best node",
    "handed": "kube-scheduler with the extender, handed over",
    "echo-best": "kube-scheduler with an extender that decides nothing, one node",
    "echo-handed": "kube-scheduler with an extender that decides nothing, handed over",
}
EXTENDER_COLOR, KUBE_SCHEDULER_COLOR, TEXT_COLOR = (
    "#3f51b5",
    "#9e9e9e",
    "#808080",
)  # readable on light and on dark pages


class Measurements:
    """Measurements, grouped by their labels."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
        for line in lines:
            # summaries of other schedulers are of other turns, with other numbers of pods
            groups[*(line.get(label) for label in LABELS), "ours_ratio" in line].append(line)
        self._groups = [group for group in groups.values() if group]

    def groups(self, **labels: Any) -> Iterator[list[Mapping[str, Any]]]:
        """Yield the runs of each measurement with these labels."""
        for group in self._groups:
            if all(group[0].get(label) == value for label, value in labels.items()):
                yield group

    def median(self, field: str, **labels: Any) -> tuple[float, int, float | None] | None:
        """Return the median of a field, the number of runs, and the median reference time in milliseconds.

        None if there is no such measurement.
        """
        for group in self.groups(**labels):
            measured = [line for line in group if line.get(field) is not None]
            if measured:  # a summary line has the number of its runs
                yardsticks = [float(line["yardstick_ms"]) for line in measured if "yardstick_ms" in line]
                return (
                    median(float(line[field]) for line in measured),
                    sum(line.get("runs", 1) for line in measured),
                    median(yardsticks) if yardsticks else None,
                )
        return None

    def curve(self, by: str, field: str, **labels: Any) -> tuple[list[float], list[float]]:
        """Return the values of *by*, ascending, and the medians of *field* for them."""
        points = sorted(
            (float(group[0][by]), median(float(line[field]) for line in group)) for group in self.groups(**labels)
        )
        return [x for x, _ in points], [y for _, y in points]


def format_number(value: float) -> str:
    """Format a number for the table."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table_rows(found: Measurements) -> Iterator[tuple[str, str, str, str]]:
    """Yield the table rows: measurement, median with unit, number of runs, reference time."""

    def row(what: str, field: str, unit: str, scale: float = 1, **labels: Any) -> Iterator[tuple[str, str, str, str]]:
        measured = found.median(field, **labels)
        if measured is not None:
            figure, runs, yardstick = measured
            yield (
                what,
                f"{format_number(figure * scale)} {unit}",
                str(runs),
                format_number(yardstick) if yardstick else "",
            )

    for nodes, (name, words) in product((5000, 50_000), WORKLOADS.items()):
        yield from row(
            f"core, {nodes:,} nodes: {words}", "pods_per_s", "pods/s", benchmark="core", workload=name, nodes=nodes
        )
    for name, words in WORKLOADS.items():
        labels = {"benchmark": "drain-summary", "workload": name}
        yield from row(f"drain: {words}, ratio to kube-scheduler", "ours_ratio", "", **labels)
    for (way, way_words), (name, words) in product(WAYS.items(), WORKLOADS.items()):
        labels = {"benchmark": "drain-summary", "workload": name}
        yield from row(f"drain: {words}, {way_words}, ratio to kube-scheduler alone", f"{way}_ratio", "", **labels)
    yield from row(
        "drain: plain, peak memory of extender schedule",
        "peak_rss_mb",
        "MB",
        benchmark="drain",
        workload="basic",
        by="ours",
    )
    yield from row(
        "drain: plain, peak memory of kube-scheduler",
        "peak_rss_mb",
        "MB",
        benchmark="drain",
        workload="basic",
        by="kube",
    )
    for nodes, pods in ((5000, 50_000), (50_000, 500_000)):
        yield from row(
            f"peak memory of extender schedule, {nodes:,} nodes and {pods:,} pods",
            "peak_rss_mb",
            "MB",
            benchmark="watch",
            case="memory",
            nodes=nodes,
        )
    for case, words in (
        ("500-names", "500 node names"), ("5000-names", "5,000 node names"), ("5000-nodes", "5,000 whole nodes"),
    ):  # fmt: skip
        for verb in ("filter", "prioritize"):
            for field in ("p50_ms", "p99_ms"):
                yield from row(
                    f"{verb}, {words}: {field[:3]}",
                    field,
                    "ms",
                    benchmark="verbs",
                    case=case,
                    verb=verb,
                )
    for field in ("p50_ms", "p99_ms"):
        yield from row(
            f"time from pod added to pod bound, idle cluster: {field[:3]}",
            field,
            "ms",
            benchmark="latency",
            case="latency",
            workload="basic",
            by="ours",
        )
    yield from row(
        "start-up until ready, 50,000 pods on a real API server", "seconds", "s", benchmark="latency", case="startup"
    )
    yield from row(
        "CPU for 1,000 node heartbeats per second", "core_percent", "% of a core",
        benchmark="watch", case="heartbeats", nodes=5000,
    )  # fmt: skip
    yield from row(
        "CPU for the first heartbeat of a node, which is decoded", "first_us_each", "µs",
        benchmark="watch", case="heartbeats", nodes=5000,
    )  # fmt: skip
    yield from row(
        "CPU for 1,000 events per second of pods that another scheduler places", "core_percent", "% of a core",
        benchmark="watch", case="churn", nodes=5000,
    )  # fmt: skip
    yield from row("event loop lag during a drain with filter requests: p99", "lag_p99_ms", "ms", benchmark="lag")
    for name, words in (
        ("plain", "plain"), ("guarded", "disruption budgets and anti-affinity"), ("spread", "topology spread"),
    ):  # fmt: skip
        yield from row(f"preemption: {words}", "p50_ms", "ms", benchmark="preemption", workload=name, every_node=False)


def draw_drains(found: Measurements, axes: Axes) -> None:
    """Draw pods per second by workload, for extender schedule and kube-scheduler."""
    names = [name for name in WORKLOADS if found.median("ours_ratio", benchmark="drain-summary", workload=name)]
    for offset, way, color, label in (
        (-0.2, "ours", EXTENDER_COLOR, "extender schedule"),
        (0.2, "kube", KUBE_SCHEDULER_COLOR, "kube-scheduler"),
    ):
        values = [found.median(f"{way}_pods_per_s", benchmark="drain-summary", workload=name) for name in names]
        axes.barh(
            [position + offset for position in range(len(names))],
            [value[0] if value else 0 for value in values],
            0.38,
            color=color,
            label=label,
        )
    axes.set_yticks(range(len(names)), [WORKLOADS[name] for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("pods per second, 5,000 nodes")


def make_curve_plot(by: str, field: str, label: str, unit: str) -> Callable[[Measurements, Axes], None]:
    """Return a function that draws a curve of the scaling benchmark."""

    def draw(found: Measurements, axes: Axes) -> None:
        names = ("basic", "spread") if by != "pending" else (None,)
        for name, color in zip(names, (EXTENDER_COLOR, KUBE_SCHEDULER_COLOR), strict=False):
            labels = {"benchmark": "scaling", "curve": by} | ({"workload": name} if name else {})
            x, y = found.curve(by, field, **labels)
            axes.plot(x, y, marker="o", color=color, label=WORKLOADS[name] if name else "one event that moves all pods")
        axes.set_xscale("symlog" if by == "pods" else "log", **({"linthresh": 10_000} if by == "pods" else {}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label)
        axes.set_ylabel(unit)

    return draw


PLOT_FUNCTIONS: dict[str, Callable[[Measurements, Axes], None]] = {
    "drain": draw_drains,
    "nodes": make_curve_plot("nodes", "cpu_us_per_pod", "nodes", "CPU time per pod, µs"),
    "pods": make_curve_plot("pods", "cpu_us_per_pod", "pods on 5,000 nodes", "CPU time per pod, µs"),
    "pending": make_curve_plot("pending", "event_ms", "unschedulable pods", "ms"),
}


def draw_plot(name: str, draw: Callable[[Measurements, Axes], None], found: Measurements) -> None:
    """Write one SVG; the same data give the same file."""
    colors = dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), TEXT_COLOR
    )
    with plt.rc_context({**colors, "svg.hashsalt": name, "font.size": 9}):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        draw(found, axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(PLOTS / f"{name}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Draw all plots and write the table."""
    found = Measurements([json.loads(line) for line in LINES.read_text().splitlines()])
    PLOTS.mkdir(exist_ok=True)
    for name, draw in PLOT_FUNCTIONS.items():
        draw_plot(name, draw, found)
    table = [
        "| measurement | median | runs | reference time, ms |",
        "|---|---|---|---|",
        *(f"| {' | '.join(map(str.strip, row))} |" for row in table_rows(found)),
    ]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{chr(10).join(table)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
