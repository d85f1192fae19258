"""Compares random scenarios with the oracle: `make oracle-sweep`. Stops at a difference and shrinks it."""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.oracle import programs
from tests.oracle.answers import Oracle, OracleError, ask_extender, find_answer_differences, running_oracle
from tests.oracle.generator.flipped_gates import flip_gates
from tests.oracle.generator.scenarios import CATEGORIES, GROUP_CATEGORIES, make_scenario
from tests.oracle.mutations import mutate_recorded_scenario
from tests.oracle.shrink import shrink

FOLDER: Final = Path(__file__).parents[2] / "build" / "oracle"
"""Where the scenarios with a difference are written."""

Scenario = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between both answers to one scenario.

    Attributes:
        lines: one line per difference, or the exception of extender.
        kinds: what differs, without the names of pods and nodes.
    """

    lines: tuple[str, ...]
    kinds: frozenset[str]


def compare(scenario: Scenario, oracle: Oracle, version: str) -> Difference:
    """Ask both for a scenario, at the same time, and compare their answers.

    Args:
        scenario: the scenario.
        oracle: the oracle.
        version: the Kubernetes minor that extender emulates.

    Raises:
        OracleError: the oracle cannot evaluate the scenario.
    """
    oracle.send(scenario)
    error: Exception | None = None
    got: dict[str, Any] = {}
    try:
        got = ask_extender(scenario, version)
    except Exception as raised:  # noqa: BLE001 - an exception is a difference, too
        error = raised
    want = oracle.receive()
    if error is not None:
        text = f"extender raises {type(error).__name__}: {error}"
        return Difference((text,), frozenset((f"exception {type(error).__name__}",)))
    lines = tuple(find_answer_differences(want, got))
    return Difference(lines, frozenset(map(classify, lines)))


def classify(line: str) -> str:
    """Return what a line is about: `shop/web.nodes.node-1.filters.NodePorts: ...` is `nodes filters NodePorts`."""
    subject, *steps = line.partition(": want ")[0].split(".")
    if subject.startswith("podGroup "):
        return " ".join(["podGroup", *(step for step in steps if "/" not in step)])
    if subject.startswith("binding "):
        return " ".join(["binding", *steps[:1]])
    if subject.startswith("event "):
        return " ".join(["event", *".".join(steps).split(" ")[:2]])
    if steps and steps[0] in ("nodes", "scores"):
        del steps[1:2]
    return " ".join(steps[:3]) or "pods"


def shrink_difference(scenario: Scenario, difference: Difference, oracle: Oracle, version: str) -> Scenario:
    """Return a smaller scenario whose differences are of the kinds of *difference*, and of no others."""

    def still_differs(smaller: Scenario) -> bool:
        try:
            kinds = compare(smaller, oracle, version).kinds
        except OracleError:
            return False
        return bool(kinds) and kinds <= difference.kinds

    return shrink(scenario, still_differs)


def write(scenario: Scenario, oracle: Oracle, folder: Path) -> Path:
    """Write a scenario and the oracle's answer in the format of the recorded ones; return the scenario's file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{scenario['metadata']['name']}.scenario.json"
    file.write_text(json.dumps(scenario, indent=1) + "\n")
    golden = file.with_name(file.name.replace(".scenario.", ".golden."))
    golden.write_text(json.dumps(oracle.ask(scenario), indent=1) + "\n")
    return file


def report(scenario: Scenario, difference: Difference, oracle: Oracle, options: argparse.Namespace) -> None:
    """Shrink a scenario, write it, and print the differences that are left."""
    print(f"{scenario['metadata']['name']}: {len(difference.lines)} differences; shrinking ...", flush=True)
    smallest = shrink_difference(scenario, difference, oracle, options.kubernetes)
    file = write(smallest, oracle, options.folder)
    for line in compare(smallest, oracle, options.kubernetes).lines[:5]:
        print(f"  {line[:500]}")
    print(f"  {len(smallest['items'])} objects are left in {file}", flush=True)


def sweep(options: argparse.Namespace, oracle: Oracle) -> int:
    """Compare the scenarios until enough differences are found; return how many of different kinds there are."""
    started = time.monotonic()
    counts: Counter[str] = Counter()
    pod_count, group_count, change_count, found = 0, 0, 0, 0
    known_kinds: set[str] = set()
    for number in range(options.first, options.first + options.number):
        if time.monotonic() - started > options.seconds or found == options.differences:
            break
        if options.mutated:
            scenario = mutate_recorded_scenario(options.seed, number)
        else:
            scenario = make_scenario(options.seed, number, options.kubernetes)
        if options.flipped_gates:
            scenario = flip_gates(options.seed, number, scenario, options.kubernetes)
        category = scenario["metadata"]["category"]
        if options.category and category not in options.category:
            continue
        try:
            difference = compare(scenario, oracle, options.kubernetes)
        except OracleError as error:
            print(f"{scenario['metadata']['name']}: not compared: {error}", flush=True)
            continue
        counts[category] += 1
        change_count += len(scenario.get("events", ()))
        pod_count += sum(item["kind"] == "Pod" and "nodeName" not in item["spec"] for item in scenario["items"])
        group_count += sum(item["kind"] == "PodGroup" for item in scenario["items"])
        if difference.kinds - known_kinds:
            found += 1
            report(scenario, difference, oracle, options)
            known_kinds |= difference.kinds
    seconds = time.monotonic() - started
    print(
        f"Kubernetes {options.kubernetes}, seed {options.seed}: {counts.total()} scenarios with {pod_count} pending "
        f"pods, {group_count} pod groups and {change_count} changes in {seconds:.0f} s; "
        f"{found or 'no'} difference{'' if found == 1 else 's'}"
    )
    print(", ".join(f"{category} {count}" for category, count in sorted(counts.items())))
    return found


def parse_minor(version: str) -> str:
    """Return the minor `1.37` of `1.37` or `1.37.2`.

    Raises:
        ArgumentTypeError: there is no oracle of this version.
    """
    for minor, module in programs.MODULES.items():
        if version in (minor, module.version().removeprefix("v")):
            return minor
    raise argparse.ArgumentTypeError(f"there is no oracle of {version}, only of {', '.join(programs.MODULES)}")


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=1000, metavar="N", help="scenarios to compare (1000)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="first scenario of the seed (0)")
    parser.add_argument("--seed", default="1", help="seed, any text (1); equal seeds make equal scenarios")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit; the default is none")
    parser.add_argument(
        "--kubernetes",
        default="1.36",
        type=parse_minor,
        metavar="VERSION",
        help="1.36 or 1.37, perhaps with a patch (1.36)",
    )
    parser.add_argument("--category", action="append", choices=list(CATEGORIES), help="only this category; repeatable")
    parser.add_argument(
        "--ordinary-pods",
        dest="category",
        action="store_const",
        const=[name for name in CATEGORIES if name not in GROUP_CATEGORIES],
        help="leave out the categories with pod groups",
    )
    parser.add_argument(
        "--mutated",
        action="store_true",
        help="mutate the recorded scenarios instead; a difference may be of an object that an API server rejects",
    )
    parser.add_argument(
        "--flipped-gates", action="store_true", help="give each scenario one or two feature gates with other values"
    )
    parser.add_argument("--differences", type=int, default=1, metavar="N", help="stop after N kinds of difference (1)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where scenarios with a difference are written")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run a sweep; return the exit status: 1 after a difference, 2 without an oracle."""
    options = parse_options(arguments)
    program = programs.find(options.kubernetes)
    if isinstance(program, str):
        print(program, file=sys.stderr)
        return 2
    with running_oracle(program) as oracle:
        return 1 if sweep(options, oracle) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
