"""Sweeps: many scenarios on one cluster. Wildcards stand for each node, each value of a label, or each type of node.

The table of a sweep has the scenarios with the worst outcome first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from extender.analysis.text_table import format_count, format_percent, format_table
from extender.answers.planning import ScenarioOutcome
from extender.answers.schema_version import AnswerKind, make_answer
from extender.api.kinds.node import Node
from extender.cache.snapshot import Snapshot
from extender.planning.scenario import Scenario
from extender.planning.what_if_report import make_what_if_values

WILDCARD: Final = "*"
"""Each node in turn for `drain`, `cordon` and `remove`; a node of each type for `like`; each value in `lose: KEY=*`."""

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_MAX_ROWS: Final = 20
_NODE_FLAGS: Final = ("drain", "cordon", "remove")

FlagValues = Mapping[str, Sequence[str]]
"""The values of the flags of a scenario, by the flags' names without dashes."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One scenario of a sweep.

    Attributes:
        name: the name of the scenario, unique in the sweep.
        config_index: the index of the configuration in the sweep.
    """

    name: str
    scenario: Scenario
    config_index: int = 0


def expand_wildcards(flags: FlagValues, snapshot: Snapshot) -> Iterator[dict[str, list[str]]]:
    """Yield the values of each scenario that *flags* stand for: all combinations of the wildcards' values."""
    names = list(flags)
    alternatives = [_expand_values(name, flags[name], snapshot) for name in names]
    for combination in product(*alternatives):
        yield dict(zip(names, combination, strict=True))


def _expand_values(name: str, values: Sequence[str], snapshot: Snapshot) -> list[list[str]]:
    """Return the alternatives for all values of one flag, each with one entry per value."""
    return [list(combination) for combination in product(*(_expand_value(name, value, snapshot) for value in values))]


def _expand_value(name: str, value: str, snapshot: Snapshot) -> Sequence[str]:
    if name in _NODE_FLAGS and value == WILDCARD:
        return list(snapshot.names)
    if name == "like" and value == WILDCARD:
        return list_node_types(snapshot)
    if name == "lose" and value.endswith(f"={WILDCARD}"):
        key = value.removesuffix(f"={WILDCARD}")
        values = {node.metadata.labels[key] for node in snapshot.nodes if key in node.metadata.labels}
        return [f"{key}={label_value}" for label_value in sorted(values)] or [value]
    return [value]


def list_node_types(snapshot: Snapshot) -> list[str]:
    """Return the first node of each type. The type is the instance type, or else the allocatable amounts."""
    first_by_type: dict[Any, str] = {}
    for node in snapshot.nodes:
        first_by_type.setdefault(_get_node_type(node), node.metadata.name)
    return list(first_by_type.values())


def _get_node_type(node: Node) -> object:
    instance_type = node.metadata.labels.get(_INSTANCE_TYPE)
    return instance_type or frozenset((name, str(amount)) for name, amount in node.status.allocatable.items())


def format_scenario_name(flags: FlagValues) -> str:
    """Return the flags of a scenario as on the command line: `--drain n1 --add 2 --like n3`."""
    return " ".join(f"--{name} {value}" for name, values in flags.items() for value in values)


def make_sweep_values(task: SweepTask, config: str, outcome: ScenarioOutcome) -> dict[str, Any]:
    """Return the result of one scenario as plain values, for one JSON line."""
    values = {"scenario": task.name, "config": config or None, **make_what_if_values(outcome)}
    return make_answer(AnswerKind.SWEEP_RESULT, values)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The outcome of one scenario in numbers.

    Attributes:
        waiting: the number of pods that are left without a node, except pods that were pending before.
        blocked, lost, evicted, moved: the numbers of pods in these lists of `make_what_if_values`.
        cpu: the requested and allocatable CPU afterwards, in milli-CPU.
    """

    scenario: str
    waiting: int
    blocked: int
    lost: int
    evicted: int
    moved: int
    cpu: tuple[int, int]

    @property
    def is_harmless(self) -> bool:
        """Whether no pod is left without a node, blocked, lost or evicted."""
        return not (self.waiting or self.blocked or self.lost or self.evicted)


def make_sweep_row(values: Mapping[str, Any]) -> SweepRow:
    """Return the numbers of a line of `make_sweep_values`."""
    cpu = values["after"]["resources"].get("cpu", {"requested": 0, "allocatable": 0})
    return SweepRow(
        values["scenario"] if values["config"] is None else f"{values['scenario']} --config {values['config']}",
        sum(not pod["wasWaiting"] for pod in values["waiting"]),
        len(values["blocked"]),
        len(values["lost"]),
        len(values["evicted"]),
        len(values["moved"]),
        (cpu["requested"], cpu["allocatable"]),
    )


def format_sweep_table(rows: list[SweepRow]) -> str:
    """Return a summary and the twenty scenarios with the most pods left, then blocked, lost, evicted, moved."""
    harmless_count = sum(row.is_harmless for row in rows)
    verb = "leaves" if harmless_count == 1 else "leave"
    summary = f"{format_count(len(rows), 'scenario')}; {harmless_count} {verb} every pod on a node."
    sorted_rows = sorted(
        rows, key=lambda row: (-row.waiting, -row.blocked, -row.lost, -row.evicted, -row.moved, row.scenario)
    )
    table = [("SCENARIO", "LEFT", "BLOCKED", "LOST", "EVICTED", "MOVED", "CPU")]
    for row in sorted_rows[:_MAX_ROWS]:
        counts = (row.waiting, row.blocked, row.lost, row.evicted, row.moved)
        cells = [str(count) for count in counts]
        table.append((row.scenario, cells[0], cells[1], cells[2], cells[3], cells[4], format_percent(*row.cpu)))
    omitted_count = len(rows) - _MAX_ROWS
    more = [f"and {format_count(omitted_count, 'scenario')} more"] if omitted_count > 0 else []
    lines = format_table(table, right_aligned=range(1, 7), indent="") if rows else []
    return "\n".join([summary, "", *lines, *more]) + "\n"
