"""A scenario: objects that come and go over time, read from a small file and played to an API.

The file is YAML:

    title: one line
    lasts: 20                 # seconds until it is over
    objects: [...]            # manifests of what is there from the start
    steps:
    - at: 2.5                 # seconds after the start; steps stand in order
      say: one line           # what happens, for people
      create: [...]           # manifests
      copies: 3               # each of them so many times, named `<name>-1` and so on
      delete: [pods/web-1]    # `<plural>/<name>`, or `<plural>/<namespace>/<name>`
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import yaml

from extender.objects.defaults import DEFAULT_NAMESPACE
from extender.sandbox.api import Api
from extender.sandbox.refusals import RefusedError
from extender.sandbox.served import SERVED, Object, Served, served


class ScenarioError(ValueError):
    """A scenario that cannot be played; the message names the place and the fix."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens at one time.

    Attributes:
        at: seconds after the start.
        say: what happens, for people.
        create: manifests of objects that come.
        copies: how many of each.
        delete: objects that go, as `<plural>/<name>` or `<plural>/<namespace>/<name>`.
    """

    at: float
    say: str = ""
    create: tuple[dict[str, Any], ...] = ()
    copies: int = 1
    delete: tuple[str, ...] = ()


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scenario.

    Attributes:
        title: what it shows.
        lasts: seconds until it is over.
        objects: manifests of what is there from the start.
        steps: what happens then, in order of time.
    """

    title: str
    lasts: float
    objects: tuple[dict[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()


Tell = Callable[[Step], None]
Sleep = Callable[[float], Awaitable[None]]


def parse_scenario(text: str | bytes, source: str) -> Scenario:
    """Reads a scenario.

    Args:
        text: YAML.
        source: what to call it in messages.

    Raises:
        ScenarioError: it is not one.
    """
    try:
        scenario = msgspec.convert(yaml.safe_load(text), Scenario)
    except yaml.YAMLError as fault:
        raise ScenarioError(f"{source}: is not YAML: {' '.join(str(fault).split())}") from fault
    except msgspec.ValidationError as fault:
        raise ScenarioError(f"{source}: {fault}") from fault
    before = 0.0
    for number, step in enumerate(scenario.steps):
        where = f"{source}: steps[{number}]"
        if not before <= step.at <= scenario.lasts:
            raise ScenarioError(
                f"{where}.at: {step.at} is not between {before} and {scenario.lasts}; put steps in order"
            )
        if step.copies < 1:
            raise ScenarioError(f"{where}.copies: {step.copies} is less than 1")
        before = step.at
        for at, manifest in enumerate(step.create):
            _check(manifest, f"{where}.create[{at}]")
        for at, reference in enumerate(step.delete):
            _check_reference(reference, f"{where}.delete[{at}]")
    for at, manifest in enumerate(scenario.objects):
        _check(manifest, f"{source}: objects[{at}]")
    return scenario


def _check(manifest: Object, where: str) -> None:
    try:
        served(manifest)
    except LookupError as fault:
        raise ScenarioError(f"{where}: {fault.args[0]}") from fault
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise ScenarioError(f"{where}.metadata.name: is missing; every object needs a name")


def _check_reference(reference: str, where: str) -> None:
    plural, *rest = reference.split("/")
    if not 1 <= len(rest) <= 2 or _by_plural(plural) is None:
        raise ScenarioError(f"{where}: {reference!r} names nothing; want something like pods/web-1")


def _by_plural(plural: str) -> Served | None:
    return next((kind for kind in SERVED if kind.plural == plural), None)


def prepare(api: Api, scenario: Scenario) -> None:
    """Create what is there from the start.

    Raises:
        ScenarioError: the API refuses an object.
    """
    for manifest in scenario.objects:
        _add(api, manifest)


async def play(
    api: Api, scenario: Scenario, tell: Tell = lambda _: None, *, speed: float = 1.0, sleep: Sleep = asyncio.sleep
) -> None:
    """Play the steps, each at its time, and wait until the scenario is over.

    Args:
        api: what to play it to; `prepare` it first.
        scenario: what to play.
        tell: called with each step before it is carried out.
        speed: how many of the scenario's seconds pass in one.
        sleep: how to wait.

    Raises:
        ScenarioError: the API refuses an object.
    """
    passed = 0.0
    for step in scenario.steps:
        await sleep((step.at - passed) / speed)
        passed = step.at
        tell(step)
        carry_out(api, step)
    await sleep((scenario.lasts - passed) / speed)


def carry_out(api: Api, step: Step) -> None:
    """Do what a step says. What is gone already when it is to be deleted is left so.

    Raises:
        ScenarioError: the API refuses an object.
    """
    for manifest in step.create:
        for number in range(1, step.copies + 1):
            name = manifest["metadata"]["name"]
            meta = {**manifest["metadata"], "name": f"{name}-{number}" if step.copies > 1 else name}
            _add(api, {**manifest, "metadata": meta})
    for reference in step.delete:
        plural, *rest = reference.split("/")
        kind = _by_plural(plural)
        namespace = rest[0] if len(rest) == 2 else DEFAULT_NAMESPACE
        if kind is not None and api.store.get(kind.place, namespace if kind.namespaced else "", rest[-1]):
            api.delete(kind, namespace if kind.namespaced else "", rest[-1])


def _add(api: Api, manifest: Object) -> None:
    try:
        api.add(manifest)
    except RefusedError as refused:
        raise ScenarioError(f"{manifest['kind']} {manifest['metadata']['name']}: {refused}") from refused
