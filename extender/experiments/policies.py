"""The policies of an experiment, and the scheduler configuration of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.app import wiring
from extender.config import load
from extender.config.did_you_mean import find_closest_name
from extender.config.model import API_VERSION, KIND
from extender.framework.profile_builder import get_extension_points
from extender.plugins.gpu_share.args import FILL, SCORE_POLICIES
from extender.plugins.gpu_share.target_workload import TargetPod
from extender.plugins.registry import load_valid_plugins

FILL_WITHOUT_WAITING: Final = "FillNoWait"
"""Fill with every pod placed that fits. Fill itself is the only policy that makes pods wait although a GPU is free."""

POLICIES: Final = (*SCORE_POLICIES, FILL_WITHOUT_WAITING)
SCHEDULER_NAME: Final = "default-scheduler"

_FILTERS: Final = ("NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit")


class UnknownPolicyError(ValueError):
    """No policy and no Score plugin has this name; the message is one line."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of an experiment.

    Attributes:
        name: the name of one of `POLICIES`, or of an installed Score plugin.
        is_plugin: whether the name is that of a Score plugin.
    """

    name: str
    is_plugin: bool = False


def find_policies(names: Iterable[str]) -> list[Policy]:
    """Return the policies with these names. Names of Score plugins in the registry are allowed.

    Raises:
        UnknownPolicyError: a name is unknown.
    """
    registry, plugin_errors = load_valid_plugins()
    plugins = sorted(name for name, plugin in registry.items() if "score" in get_extension_points(plugin))
    policies = []
    for name in dict.fromkeys(names):
        if name not in POLICIES and (name not in plugins or name == "GpuShare"):
            suggestion = find_closest_name(name, (*POLICIES, *plugins))
            hint = f"; did you mean {suggestion}?" if suggestion else "."
            raise UnknownPolicyError(
                f'there is no policy "{name}"{hint} Use {", ".join(POLICIES)} or a Score plugin that is installed'
                + "".join(f"; {error}" for error in plugin_errors)
            )
        policies.append(Policy(name, is_plugin=name not in POLICIES))
    return policies


def build_setup(policy: Policy, target_workload: Sequence[TargetPod], seed: int) -> wiring.SchedulerSetup:
    """Build the scheduler of *policy*: the filters that concern the trace, and one Score plugin."""
    return wiring.build_setup(load.from_builtins(_make_configuration(policy, target_workload, seed), "policy"))


def _make_configuration(policy: Policy, target_workload: Sequence[TargetPod], seed: int) -> Mapping[str, Any]:
    score_plugin = policy.name if policy.is_plugin else "GpuShare"
    args: dict[str, Any] = {"seed": seed, "targetWorkload": msgspec.to_builtins(tuple(target_workload))}
    if policy.is_plugin:
        args["scorePolicy"] = "BestFit"
    elif policy.name == FILL_WITHOUT_WAITING:
        args |= {"scorePolicy": FILL, "wastefulPodsWait": False}
    else:
        args["scorePolicy"] = policy.name
    points = {
        "queueSort": ["PrioritySort"],
        "preFilter": ["NodeAffinity", "NodeResourcesFit", "GpuShare"],
        "filter": [*_FILTERS, "GpuShare"],
        "score": [score_plugin],
        "reserve": ["GpuShare"],
        "preBind": ["GpuShare"],
        "bind": ["DefaultBinder"],
    }
    if policy.is_plugin and "preScore" in get_extension_points(load_valid_plugins()[0][score_plugin]):
        points["preScore"] = [score_plugin]
    plugins = {point: {"enabled": [{"name": name} for name in names]} for point, names in points.items()}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [
            {
                "schedulerName": SCHEDULER_NAME,
                "plugins": {"multiPoint": {"disabled": [{"name": "*"}]}, **plugins},
                "pluginConfig": [{"name": "GpuShare", "args": args}],
            }
        ],
    }
