"""The limits and the steps of a plan, and the conversion of steps to plain values and to kubectl commands."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from extender.answers.rebalance import PodPlacement

DEFAULT_MAX_MOVES: Final = 20
DEFAULT_MAX_ATTEMPTS: Final = 100_000

SearchProgress = Callable[[int, int], None]
"""A function that is called with the number of finished parts of a search and the number of all parts."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of a search for a plan.

    Attributes:
        max_attempts: the maximum number of scheduling cycles and filter runs. With equal limits, equal clusters have
            equal plans on every machine.
    """

    max_moves: int = DEFAULT_MAX_MOVES
    max_attempts: int = DEFAULT_MAX_ATTEMPTS


class Action(Enum):
    """The action of a step."""

    CORDON = "cordon"
    EVICT = "evict"
    UNCORDON = "uncordon"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the cluster.

    Attributes:
        name: the name of the node; for an eviction `namespace/name` of the pod.
    """

    action: Action
    name: str


@dataclass(frozen=True, slots=True)
class Step:
    """A change with the outcome that was proven.

    Attributes:
        source: the node of the evicted pod; empty if no pod is evicted.
        target: the node that the scheduling cycle selects for the pod that replaces the evicted pod; or empty.
        equal_targets: the nodes with the same score, among which kube-scheduler selects one at random; with *target*.
        placed: the waiting pods that find a node because of the step.
    """

    change: Change
    source: str = ""
    target: str = ""
    equal_targets: tuple[str, ...] = ()
    placed: tuple[PodPlacement, ...] = ()

    def to_values(self) -> dict[str, Any]:
        """Return the step as plain values, always with the same keys."""
        is_eviction = self.change.action is Action.EVICT
        return {
            "action": self.change.action.value,
            "pod": self.change.name if is_eviction else None,
            "node": None if is_eviction else self.change.name,
            "from": self.source or None,
            "to": self.target or None,
            "equalNodes": list(self.equal_targets),
            "placed": msgspec.to_builtins(list(self.placed)),
            "command": make_command(self.change),
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """The change that the cluster does not allow, and why."""

    change: Change
    reason: str

    def __str__(self) -> str:
        return f"{self.change.action.value} {self.change.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome of changes that were made one after another on a copy of a cluster.

    Attributes:
        steps: the changes that were made.
        failure: the change that was not possible; None if all were made.
    """

    steps: tuple[Step, ...] = ()
    failure: Failure | None = None

    @property
    def moves(self) -> int:
        """The number of evictions."""
        return sum(step.change.action is Action.EVICT for step in self.steps)


def make_command(change: Change) -> str:
    """Return the kubectl command that makes a change. An eviction asks the eviction API, which respects budgets."""
    if change.action is not Action.EVICT:
        return f"kubectl {change.action.value} {shlex.quote(change.name)}"
    namespace, _, name = change.name.partition("/")
    path = shlex.quote(f"/api/v1/namespaces/{namespace}/pods/{name}/eviction")
    return f"echo {shlex.quote(json.dumps(make_eviction(namespace, name)))} | kubectl create --raw {path} -f -"


def make_eviction(namespace: str, name: str, uid: str = "") -> dict[str, Any]:
    """Return the Eviction of a pod; *uid* is a precondition if it is not empty."""
    eviction: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    if uid:
        eviction["deleteOptions"] = {"preconditions": {"uid": uid}}
    return eviction
