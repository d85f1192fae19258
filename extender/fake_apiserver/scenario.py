"""Parse and run scenarios, which create and delete objects over time.

A scenario is a YAML file:

    title: one line
    durationSeconds: 20       # duration of the scenario
    objects: [...]            # manifests of the initial objects
    steps:
    - atSeconds: 2.5          # seconds since the start; steps are in order of time
      message: one line       # description for people
      create: [...]           # manifests of the objects to create
      copies: 3               # number of copies of each manifest, named `<name>-1` and so on
      delete: [pods/web-1]    # objects to delete: `<plural>/<name>`, or `<plural>/<namespace>/<name>`
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import yaml

from extender.api.defaults import DEFAULT_NAMESPACE
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.resources import API_RESOURCES, ApiResource, Object, find_resource


class ScenarioError(ValueError):
    """A scenario is invalid. The message names the field and the fix."""


class Step(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The objects that are created and deleted at one time.

    Attributes:
        at_seconds: the time of the step in seconds since the start.
        message: the description of the step for people.
        copies: the number of copies of each manifest.
        delete: the objects to delete, as `<plural>/<name>` or `<plural>/<namespace>/<name>`.
    """

    at_seconds: float
    message: str = ""
    create: tuple[dict[str, Any], ...] = ()
    copies: int = 1
    delete: tuple[str, ...] = ()


class Scenario(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The initial objects of a cluster, and the steps that change them."""

    title: str
    duration_seconds: float
    objects: tuple[dict[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()


StepObserver = Callable[[Step], None]
Sleep = Callable[[float], Awaitable[None]]


def parse_scenario(text: str | bytes, source: str) -> Scenario:
    """Parse a scenario.

    *text* is YAML; *source* is the name of the file in error messages.

    Raises:
        ScenarioError: the scenario is invalid.
    """
    try:
        scenario = msgspec.convert(yaml.safe_load(text), Scenario)
    except yaml.YAMLError as error:
        raise ScenarioError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{source}: {error}") from error
    previous_seconds = 0.0
    for step_index, step in enumerate(scenario.steps):
        location = f"{source}: steps[{step_index}]"
        if not previous_seconds <= step.at_seconds <= scenario.duration_seconds:
            raise ScenarioError(
                f"{location}.atSeconds: {step.at_seconds} is not between {previous_seconds} and"
                f" {scenario.duration_seconds}; put the steps in order of time, before the end"
            )
        if step.copies < 1:
            raise ScenarioError(f"{location}.copies: {step.copies} is less than 1")
        previous_seconds = step.at_seconds
        for index, manifest in enumerate(step.create):
            _check_manifest(manifest, f"{location}.create[{index}]")
        for index, reference in enumerate(step.delete):
            _check_reference(reference, f"{location}.delete[{index}]")
    for index, manifest in enumerate(scenario.objects):
        _check_manifest(manifest, f"{source}: objects[{index}]")
    return scenario


def _check_manifest(manifest: Object, location: str) -> None:
    try:
        find_resource(manifest)
    except LookupError as error:
        raise ScenarioError(f"{location}: {error.args[0]}") from error
    meta = manifest.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise ScenarioError(f"{location}.metadata.name: is missing; every object needs a name")


def _check_reference(reference: str, location: str) -> None:
    plural, *name_parts = reference.split("/")
    if not 1 <= len(name_parts) <= 2 or _find_resource_by_plural(plural) is None:
        raise ScenarioError(f"{location}: {reference!r} does not name an object; write one such as pods/web-1")


def _find_resource_by_plural(plural: str) -> ApiResource | None:
    return next((resource for resource in API_RESOURCES if resource.plural == plural), None)


def create_objects(api: Api, scenario: Scenario) -> None:
    """Create the initial objects.

    Raises:
        ScenarioError: the API rejects an object.
    """
    for manifest in scenario.objects:
        _create(api, manifest)


async def run_scenario(
    api: Api,
    scenario: Scenario,
    on_step: StepObserver = lambda _: None,
    *,
    speed: float = 1.0,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Run the steps, each at its time, and wait until the end of the scenario.

    Args:
        api: the API, in which `create_objects` has created the initial objects.
        scenario: the scenario.
        on_step: is called before each step.
        speed: the speed of the scenario; 2 runs it in half of its duration.
        sleep: waits for a number of seconds.

    Raises:
        ScenarioError: the API rejects an object.
    """
    elapsed_seconds = 0.0
    for step in scenario.steps:
        await sleep((step.at_seconds - elapsed_seconds) / speed)
        elapsed_seconds = step.at_seconds
        on_step(step)
        apply_step(api, step)
    await sleep((scenario.duration_seconds - elapsed_seconds) / speed)


def apply_step(api: Api, step: Step) -> None:
    """Create and delete the objects of a step. Deleting a missing object has no effect.

    Raises:
        ScenarioError: the API rejects an object.
    """
    for manifest in step.create:
        for copy_number in range(1, step.copies + 1):
            name = manifest["metadata"]["name"]
            meta = {**manifest["metadata"], "name": f"{name}-{copy_number}" if step.copies > 1 else name}
            _create(api, {**manifest, "metadata": meta})
    for reference in step.delete:
        plural, *name_parts = reference.split("/")
        resource = _find_resource_by_plural(plural)
        namespace = name_parts[0] if len(name_parts) == 2 else DEFAULT_NAMESPACE
        if resource is not None and api.store.get(
            resource.storage_key, namespace if resource.namespaced else "", name_parts[-1]
        ):
            api.delete(resource, namespace if resource.namespaced else "", name_parts[-1])


def _create(api: Api, manifest: Object) -> None:
    try:
        api.create_from_manifest(manifest)
    except StatusError as error:
        raise ScenarioError(f"{manifest['kind']} {manifest['metadata']['name']}: {error}") from error
