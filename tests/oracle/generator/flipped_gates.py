"""Gives scenarios feature gates with other values: each gate of kube-scheduler, alone or with another one."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from extender.config.feature_gate_specs import FEATURE_SPECS
from extender.config.feature_gates import SCHEDULING_FEATURES
from extender.config.feature_gates_flag import GATE_DEPENDENCIES

_NOT_COMPARED: Final = frozenset(("InterPodAffinityHostnameFastPath", "SchedulerAsyncPreemption"))
"""Gates that need certain nodes, or that the oracle turns off itself."""


def flip_gates(seed: str, number: int, scenario: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a scenario with one or two gates more that differ from their defaults in the minor *version*.

    The gates that they depend on are on, and the gates that depend on them are off, as kube-scheduler requires.
    """
    rng = Random(f"{seed}/{number}/gates")
    specs = FEATURE_SPECS[version]
    names = sorted(name for name in SCHEDULING_FEATURES - _NOT_COMPARED if name in specs and not specs[name].locked)
    flipped = rng.sample(names, rng.choice((1, 2)))
    gates: dict[str, bool] = dict(scenario.get("featureGates", {}))
    for name in flipped:
        _set_gate(gates, name, not specs[name].default)
    if gates.get("InPlacePodVerticalScalingSchedulerPreemption"):
        _remove_resizes_of_pending_pods(scenario)
    return {**scenario, "featureGates": _keep_known(gates, version)}


def _set_gate(gates: dict[str, bool], name: str, value: bool) -> None:
    gates[name] = value
    if value:
        others = GATE_DEPENDENCIES.get(name, ())
    else:
        others = tuple(other for other, needed in GATE_DEPENDENCIES.items() if name in needed)
    for other in others:
        _set_gate(gates, other, value)


def _remove_resizes_of_pending_pods(scenario: dict[str, Any]) -> None:
    """Remove the condition that only a kubelet writes, which knows no pod without a node."""
    for item in scenario["items"]:
        if item["kind"] == "Pod" and not item["spec"].get("nodeName"):
            conditions = item["status"].get("conditions", ())
            item["status"]["conditions"] = [each for each in conditions if each["type"] != "PodResizePending"]


def _keep_known(gates: Mapping[str, bool], version: str) -> dict[str, bool]:
    """Return the gates that the minor has and that are not locked."""
    specs = FEATURE_SPECS[version]
    return {name: value for name, value in gates.items() if name in specs and not specs[name].locked}
