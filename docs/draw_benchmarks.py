"""Draws the plots of docs/benchmarks.md, and writes its table, from the lines that benchmarks printed.

    python docs/draw_benchmarks.py

`tests/bench/suite.py --record docs/benchmarks.jsonl` adds lines. Of several with the same labels the medians count.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
OURS, THEIRS, INK = "#3f51b5", "#9e9e9e", "#808080"  # ink that reads on a light page and on a dark one


class Found:
    """What was measured: medians of lines with the same labels."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
        for line in lines:
            groups[tuple(line.get(label) for label in LABELS)].append(line)
        self._groups = [group for group in groups.values() if group]

    def all(self, **labels: Any) -> Iterator[list[Mapping[str, Any]]]:
        """The runs of each measurement with these labels."""
        for group in self._groups:
            if all(group[0].get(label) == value for label, value in labels.items()):
                yield group

    def median(self, field: str, **labels: Any) -> tuple[float, int, float | None] | None:
        """The median of a field, of how many runs it is, and that of the yardstick in milliseconds.

        None if nothing like it was measured.
        """
        for group in self.all(**labels):
            measured = [line for line in group if line.get(field) is not None]
            if measured:  # a summary stands for several runs
                yardsticks = [float(line["yardstick_ms"]) for line in measured if "yardstick_ms" in line]
                return (
                    median(float(line[field]) for line in measured),
                    sum(line.get("runs", 1) for line in measured),
                    median(yardsticks) if yardsticks else None,
                )
        return None

    def curve(self, by: str, field: str, **labels: Any) -> tuple[list[float], list[float]]:
        """A field over another one, both ascending."""
        points = sorted(
            (float(group[0][by]), median(float(line[field]) for line in group)) for group in self.all(**labels)
        )
        return [x for x, _ in points], [y for _, y in points]


def number(value: float) -> str:
    """As the table has it."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rows(found: Found) -> Iterator[tuple[str, str, str, str]]:
    """What, the figure, the number of runs, and how fast the machine was."""

    def row(what: str, field: str, unit: str, scale: float = 1, **labels: Any) -> Iterator[tuple[str, str, str, str]]:
        measured = found.median(field, **labels)
        if measured is not None:
            figure, runs, yardstick = measured
            yield what, f"{number(figure * scale)} {unit}", str(runs), number(yardstick) if yardstick else ""

    for nodes in (5000, 50_000):
        for name, words in WORKLOADS.items():
            yield from row(
                f"core, {nodes:,} nodes: {words}", "pods_per_s", "pods/s", benchmark="core", workload=name, nodes=nodes
            )
    for name, words in WORKLOADS.items():
        labels = {"benchmark": "drain-summary", "workload": name}
        yield from row(f"drain: {words}, ratio to kube-scheduler", "ours_ratio", "", **labels)
    yield from row(
        "kube-scheduler calling the extender, ratio to it alone", "called_ratio", "", benchmark="drain-summary"
    )
    yield from row(
        "drain, plain, peak memory: ours", "peak_rss_mb", "MB", benchmark="drain", workload="basic", by="ours"
    )
    yield from row(
        "drain, plain, peak memory: kube-scheduler", "peak_rss_mb", "MB", benchmark="drain", workload="basic", by="kube"
    )
    for nodes, pods in ((5000, 50_000), (50_000, 500_000)):
        yield from row(
            f"peak memory, {nodes:,} nodes and {pods:,} pods",
            "peak_rss_mb",
            "MB",
            benchmark="watching",
            case="memory",
            nodes=nodes,
        )
    for case in ("500-names", "5000-names", "5000-nodes"):
        for verb in ("filter", "prioritize"):
            for field in ("p50_ms", "p99_ms"):
                yield from row(
                    f"{verb}, {case.replace('-', ' ')}: {field[:3]}",
                    field,
                    "ms",
                    benchmark="verbs",
                    case=case,
                    verb=verb,
                )
    for field in ("p50_ms", "p99_ms"):
        yield from row(
            f"pod added to pod bound, idle cluster: {field[:3]}", field, "ms", benchmark="living", case="latency"
        )
    yield from row(
        "start-up until ready, 50,000 pods on a real API server", "seconds", "s", benchmark="living", case="startup"
    )
    yield from row(
        "1,000 node heartbeats a second", "core_percent", "% of a core",
        benchmark="watching", case="heartbeats", nodes=5000,
    )  # fmt: skip
    yield from row(
        "the first report of a node, which is read whole", "first_us_each", "µs",
        benchmark="watching", case="heartbeats", nodes=5000,
    )  # fmt: skip
    yield from row(
        "1,000 events a second about pods that others place", "core_percent", "% of a core",
        benchmark="watching", case="churn", nodes=5000,
    )  # fmt: skip
    yield from row("lag of the event loop under drain and filter requests: p99", "lag_p99_ms", "ms", benchmark="lag")
    for name in ("plain", "guarded", "spread"):
        yield from row(f"preemption: {name}", "p50_ms", "ms", benchmark="preemption", workload=name, every_node=False)


def drains(found: Found, axes: Axes) -> None:
    """Pods a second by workload, ours beside kube-scheduler."""
    names = [name for name in WORKLOADS if found.median("ours_ratio", benchmark="drain-summary", workload=name)]
    for offset, way, color, label in (
        (-0.2, "ours", OURS, "extender schedule"),
        (0.2, "kube", THEIRS, "kube-scheduler"),
    ):
        values = [found.median(f"{way}_pods_per_s", benchmark="drain-summary", workload=name) for name in names]
        axes.barh(
            [place + offset for place in range(len(names))],
            [value[0] if value else 0 for value in values],
            0.38,
            color=color,
            label=label,
        )
    axes.set_yticks(range(len(names)), [WORKLOADS[name] for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("pods a second, 5,000 nodes")


def curves(by: str, field: str, label: str, unit: str) -> Callable[[Found, Axes], None]:
    """A plot of the scaling benchmark."""

    def draw(found: Found, axes: Axes) -> None:
        names = ("basic", "spread") if by != "pending" else (None,)
        for name, color in zip(names, (OURS, THEIRS), strict=False):
            labels = {"benchmark": "scaling", "curve": by} | ({"workload": name} if name else {})
            x, y = found.curve(by, field, **labels)
            axes.plot(x, y, marker="o", color=color, label=WORKLOADS[name] if name else "one event for all of them")
        axes.set_xscale("symlog" if by == "pods" else "log", **({"linthresh": 10_000} if by == "pods" else {}))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(label)
        axes.set_ylabel(unit)

    return draw


DRAWN: dict[str, Callable[[Found, Axes], None]] = {
    "drain": drains,
    "nodes": curves("nodes", "cpu_us_per_pod", "nodes", "µs of processor time a pod"),
    "pods": curves("pods", "cpu_us_per_pod", "pods on 5,000 nodes", "µs of processor time a pod"),
    "pending": curves("pending", "event_ms", "pods that wait", "ms"),
}


def plot(name: str, draw: Callable[[Found, Axes], None], found: Found) -> None:
    """One SVG, the same for the same figures."""
    colors = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    with plt.rc_context({**colors, "svg.hashsalt": name, "font.size": 9}):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        draw(found, axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        figure.savefig(PLOTS / f"{name}.svg", transparent=True, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Read, draw, write."""
    found = Found([json.loads(line) for line in LINES.read_text().splitlines()])
    PLOTS.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        plot(name, draw, found)
    table = [
        "| what | median | runs | yardstick, ms |",
        "|---|---|---|---|",
        *(f"| {' | '.join(map(str.strip, row))} |" for row in rows(found)),
    ]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}{chr(10).join(table)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
