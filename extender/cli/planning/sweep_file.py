"""Read the file of a sweep: scenarios with the flags of `extender what-if`, and configurations."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from extender.analysis.input.input_errors import InputError, InputErrorLine
from extender.cli.planning.scenario_input import ScenarioFlags, read_scenario
from extender.cli.recording_options import Cluster, read_document
from extender.config.did_you_mean import did_you_mean
from extender.planning.sweep import SweepTask, expand_wildcards, format_scenario_name

_TOP_KEYS: Final = ("scenarios", "configs")
_LIST_FLAGS: Final = (
    "drain", "cordon", "remove", "lose", "add", "like", "nodes", "pods", "scale", "taint", "label",
)  # fmt: skip
_SINGLE_FLAGS: Final = ("replicas", "namespace", "preempt")
_KEYS: Final = ("name", *_LIST_FLAGS, *_SINGLE_FLAGS)
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_MAX_SCENARIOS: Final = 1_000_000


def read_sweep_file(file: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the scenarios of a file, with wildcards, and its configuration files.

    Raises:
        InputError: the file is invalid; contains all errors.
    """
    location, document = read_document(file)
    errors = [InputErrorLine(location, message, path=path) for path, message in _find_errors(document)]
    if errors:
        raise InputError(errors)
    return document["scenarios"], document.get("configs") or []


def _find_errors(document: object) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of each error."""
    if not isinstance(document, dict) or not isinstance(document.get("scenarios"), list) or not document["scenarios"]:
        yield "scenarios", "want a list of scenarios, such as - drain: n1"
        return
    for key in document.keys() - set(_TOP_KEYS):
        yield str(key), f"is unknown; want scenarios or configs{did_you_mean(str(key), _TOP_KEYS)}"
    configs = document.get("configs") or []
    if not isinstance(configs, list) or not all(isinstance(config, str) for config in configs):
        yield "configs", "want a list of file names"
    for index, entry in enumerate(document["scenarios"]):
        yield from _find_scenario_errors(f"scenarios[{index}]", entry)


def _find_scenario_errors(path: str, entry: object) -> Iterator[tuple[str, str]]:
    if not isinstance(entry, dict) or not entry:
        yield path, "want the flags of what-if without dashes, such as drain: n1"
        return
    for key, value in entry.items():
        values = value if isinstance(value, list) else [value]
        if key not in _KEYS:
            yield f"{path}.{key}", f"is no flag of a scenario{did_you_mean(str(key), _KEYS)}"
        elif key == "preempt":
            if not isinstance(value, bool):
                yield f"{path}.{key}", "want true or false"
        elif key in ("add", "replicas"):
            if not values or not all(_NUMBER.fullmatch(str(item)) for item in values):
                yield f"{path}.{key}", "want a number"
        elif not values or not all(isinstance(item, str) for item in values):
            yield f"{path}.{key}", "want text, or a list of texts"


def make_sweep_tasks(entries: list[dict[str, Any]], config_count: int, cluster: Cluster) -> list[SweepTask]:
    """Expand the wildcards of all scenarios, and check each scenario's values; one task for each configuration.

    Raises:
        BadParameter: a value is invalid, or there are too many scenarios.
        InputError: a file that a scenario names is invalid.
    """
    tasks: list[SweepTask] = []
    names: set[str] = set()
    snapshot = cluster.cache.snapshot()
    for entry in entries:
        lists = {key: _to_texts(entry[key]) for key in entry if key in _LIST_FLAGS}
        for flags in expand_wildcards(lists, snapshot):
            scenario = read_scenario(_make_flags(flags, entry), cluster)
            name = _choose_name(entry, flags, names)
            names.add(name)
            tasks += [SweepTask(name, scenario, index) for index in range(max(1, config_count))]
            if len(tasks) > _MAX_SCENARIOS:
                raise typer.BadParameter(f"more than {_MAX_SCENARIOS} scenarios", param_hint="--sweep")
    return tasks


def _to_texts(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _make_flags(flags: Mapping[str, list[str]], entry: Mapping[str, Any]) -> ScenarioFlags:
    single_values = {key: entry[key] for key in _SINGLE_FLAGS if key in entry}
    if "replicas" in single_values:
        single_values["replicas"] = int(single_values["replicas"])
    added_counts = {"add": [int(count) for count in flags["add"]]} if "add" in flags else {}
    values: dict[str, Any] = {**flags, **added_counts, **single_values}
    return ScenarioFlags(**values)


def _choose_name(entry: Mapping[str, Any], flags: Mapping[str, list[str]], used_names: set[str]) -> str:
    """Return the name of a scenario: its `name`, or its flags, or both if the flags have a wildcard.

    A name that is taken gets a number.
    """
    single_values = {key: [str(entry[key]).lower()] for key in _SINGLE_FLAGS if key in entry}
    text = format_scenario_name({**flags, **single_values})
    has_wildcard = any(value.endswith("*") for key in flags for value in _to_texts(entry[key]))
    own_name = str(entry.get("name", ""))
    name = f"{own_name}: {text}" if own_name and has_wildcard else own_name or text
    unique_name, number = name, 2
    while unique_name in used_names:
        unique_name, number = f"{name} #{number}", number + 1
    return unique_name
