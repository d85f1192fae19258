"""Draw the runs of an experiment as SVG files. The package matplotlib is optional."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from operator import attrgetter
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Final

from extender.experiments.fragmentation_causes import Cause
from extender.experiments.runner import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CAUSE_LABELS: Final = {
    Cause.NO_GPU_REQUESTED: "the pod requests no GPU",
    Cause.GPU_MODEL: "another GPU model",
    Cause.GPU: "too little free GPU",
    Cause.CPU: "too little free CPU",
    Cause.GPU_AND_CPU: "too little of both",
}
_ARRIVED_LABEL: Final = "arrived demand, % of the GPUs"
_FIRST_SHOWN_PERCENT: Final = 70
_PANELS_PER_ROW: Final = 3


class MatplotlibMissingError(RuntimeError):
    """The package matplotlib is not installed; the message is one line."""


def check_matplotlib() -> None:
    """Check that plots can be drawn.

    Raises:
        MatplotlibMissingError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MatplotlibMissingError(
            "needs the package matplotlib; install it with pip install 'kube-scheduler-extender[plots]'"
        )


def write_plots(runs: Sequence[Run], directory: Path) -> list[Path]:
    """Write `allocation.svg`, `waiting.svg` and `fragmentation.svg` to *directory*, and return their paths.

    Every curve is the mean over the seeds of a policy. Equal runs give equal files.

    There is at least one run. The directory is created if it does not exist.

    Raises:
        OSError: a file cannot be written. The error names it.
    """
    from matplotlib import rc_context  # noqa: PLC0415 (optional, and its import takes a second)

    directory.mkdir(parents=True, exist_ok=True)
    draw_functions: Mapping[str, Callable[[Figure, Sequence[Run]], None]] = {
        "allocation": _draw_allocation,
        "waiting": _draw_waiting_pods,
        "fragmentation": _draw_fragmentation,
    }
    paths = []
    for name, draw in draw_functions.items():
        path = directory / f"{name}.svg"
        with rc_context({"svg.hashsalt": name, "font.size": 9}):
            figure = _make_figure()
            draw(figure, runs)
            try:
                figure.savefig(path, format="svg", metadata={"Date": None})
            except OSError as error:
                if error.filename is None:  # it was opened, and a part may be written, as on a full disk
                    path.unlink(missing_ok=True)
                raise OSError(error.errno, error.strerror, str(path)) from error
        paths.append(path)
    return paths


def _make_figure() -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415 (optional, and its import takes a second)

    return Figure(figsize=(7.2, 4.2), layout="constrained")


def _draw_allocation(figure: "Figure", runs: Sequence[Run]) -> None:
    axes = figure.subplots()
    _plot_means(axes, runs, attrgetter("allocated_percent"))
    axes.plot([0, 100], [0, 100], color="gray", linestyle=":", label="all that arrived")
    last = max(max(run.allocated_percent) for run in runs)
    axes.set_xlim(min(_FIRST_SHOWN_PERCENT, last - 1), last)
    axes.set_ylim(bottom=_FIRST_SHOWN_PERCENT - 10 if last > _FIRST_SHOWN_PERCENT else 0, top=100)
    axes.set_xlabel(_ARRIVED_LABEL)
    axes.set_ylabel("allocated GPUs, %")
    axes.legend(frameon=False)


def _draw_waiting_pods(figure: "Figure", runs: Sequence[Run]) -> None:
    axes = figure.subplots()
    _plot_means(axes, runs, attrgetter("waiting_pods"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(_ARRIVED_LABEL)
    axes.set_ylabel("waiting pods")
    axes.legend(frameon=False)


def _plot_means(axes: "Axes", runs: Sequence[Run], get_values: Callable[[Run], Mapping[int, float]]) -> None:
    """Draw a curve for each policy. Every second one is dashed, so that it does not hide an equal one."""
    styles = cycle(("-", "--"))
    for (name, policy_runs), style in zip(_group_by_policy(runs).items(), styles, strict=False):
        demand_percents, means = _compute_means(map(get_values, policy_runs))
        axes.plot(demand_percents, means, linestyle=style, label=name)


def _draw_fragmentation(figure: "Figure", runs: Sequence[Run]) -> None:
    """Draw a panel for each policy: the causes are stacked, so that the upper edge is the fragmentation."""
    groups = _group_by_policy(runs)
    rows = -(-len(groups) // _PANELS_PER_ROW)
    figure.set_size_inches(7.2, 1.2 + 2.2 * rows)
    grid = figure.subplots(rows, min(len(groups), _PANELS_PER_ROW), sharex=True, sharey=True, squeeze=False)
    panels = list(grid.flat)
    for axes, (name, policy_runs) in zip(panels, groups.items(), strict=False):
        curves = {cause: _compute_means(_select_cause(run, cause) for run in policy_runs) for cause in Cause}
        demand_percents = next(iter(curves.values()))[0]
        axes.stackplot(demand_percents, [means for _, means in curves.values()], labels=list(_CAUSE_LABELS.values()))
        axes.set_title(name)
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    for axes in panels[: len(groups)][-_PANELS_PER_ROW:]:  # the lowest panel of each column
        axes.tick_params(labelbottom=True)
    figure.supxlabel(_ARRIVED_LABEL)
    figure.supylabel("fragmented GPUs, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=_PANELS_PER_ROW, frameon=False)


def _select_cause(run: Run, cause: Cause) -> dict[int, float]:
    return {demand_percent: by_cause[cause] for demand_percent, by_cause in run.fragmented_percent.items()}


def _group_by_policy(runs: Sequence[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.policy, []).append(run)
    return groups


def _compute_means(curves: Iterable[Mapping[int, float]]) -> tuple[list[int], list[float]]:
    """Return the demands in per cent that any curve has, ascending, and the mean of the curves at each."""
    values: dict[int, list[float]] = {}
    for curve in curves:
        for demand_percent, value in curve.items():
            values.setdefault(demand_percent, []).append(value)
    demand_percents = sorted(values)
    return demand_percents, [mean(values[demand_percent]) for demand_percent in demand_percents]
