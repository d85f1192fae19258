"""The answers of `extender fits -o json` and `extender what-if -o json`, with and without `--sweep`."""

from typing import Annotated

from msgspec import Meta, field

from extender.answers.answer_struct import Answer, AnswerPart, PodKey, ReasonCodes, Reasons, ResourceUse, SchemaVersion
from extender.answers.simulation import PlannedPreemption


class StoppingNodes(AnswerPart):
    """The nodes that reject the next copy for the same reasons."""

    reasons: Reasons
    reason_codes: ReasonCodes
    plugins: Annotated[list[str], Meta(description="The plugins with these reasons, each once.")]
    count: int
    nodes: Annotated[list[str], Meta(description="In the order of the cluster; none if the reasons concern no node.")]


class FitCount(AnswerPart):
    """The number of copies of one pod that fit."""

    pod: PodKey
    fits: int
    limit_reached: Annotated[bool, Meta(description="Whether the count stopped at --limit.")]
    last: Annotated[str | None, Meta(description="The node of the last copy.")]
    placed: Annotated[dict[str, int], Meta(description="The number of copies by node, the largest number first.")]
    stopped_by: list[StoppingNodes]
    message: Annotated[str | None, Meta(description="kube-scheduler's message about the next copy.")]


class FitsOfShape(FitCount):
    """The number of copies of one pod that fit, and the number of its workloads."""

    replicas: Annotated[int, Meta(description="The number of pods of the workload; 1 for a pod.")]
    workloads: Annotated[int, Meta(description="How many times the whole workload fits.")]


class FitsAnswer(FitsOfShape):
    """The number of copies of the pod in one file."""

    schema_version: SchemaVersion
    kind: str


class FitsByShapeAnswer(Answer):
    """The number of copies of several pods, each counted alone."""

    shapes: list[FitsOfShape]


class MovedPodResult(AnswerPart):
    """A pod that is placed."""

    pod: PodKey
    source: Annotated[str | None, Meta(description="The node that it left; null if it had none.")] = field(name="from")
    to: str


class WaitingPodResult(AnswerPart):
    """A pod that is left without a node."""

    pod: PodKey
    source: Annotated[str | None, Meta(description="The node that it left; null if it had none.")] = field(name="from")
    reasons: Reasons
    reason_codes: ReasonCodes
    message: str
    was_waiting: Annotated[bool, Meta(description="Whether it had no node in the recorded cluster.")]
    preemption: Annotated[PlannedPreemption | None, Meta(description="What it would evict; null for nothing.")]


class EvictedPodResult(AnswerPart):
    """A pod that another pod evicts."""

    pod: PodKey
    node: str
    by: PodKey
    violated_budgets: list[str]


class LostPodResult(AnswerPart):
    """A pod that no controller creates again."""

    pod: PodKey
    node: str


class BlockedPodResult(AnswerPart):
    """A pod that budgets keep on its node."""

    pod: PodKey
    node: str
    budgets: list[str]


class ViolatedBudget(AnswerPart):
    """A budget, and the pods beyond it."""

    budget: str
    pods: list[PodKey]


class Totals(AnswerPart):
    """The totals of a cluster."""

    nodes: int
    pods: Annotated[int, Meta(description="The pods on nodes.")]
    waiting: Annotated[int, Meta(description="The pods without a node that a profile schedules.")]
    resources: dict[str, ResourceUse]
    cost: Annotated[float | None, Meta(description="The price of the nodes; null without prices.")]
    unpriced_nodes: int | None


class ScenarioOutcome(AnswerPart):
    """What a scenario changes."""

    moved: Annotated[list[MovedPodResult], Meta(description="The pods that are placed, in this order.")]
    waiting: Annotated[list[WaitingPodResult], Meta(description="Those that had no node before come last.")]
    evicted: Annotated[list[EvictedPodResult], Meta(description="Those that preemption evicts.")]
    lost: list[LostPodResult]
    blocked: list[BlockedPodResult]
    violated_budgets: list[ViolatedBudget]
    removed: Annotated[list[PodKey], Meta(description="The pods that --scale removes.")]
    before: Totals
    after: Totals


class WhatIfAnswer(ScenarioOutcome):
    """The outcome of one scenario."""

    schema_version: SchemaVersion
    kind: str


class SweepResultAnswer(ScenarioOutcome):
    """One line of a sweep: the outcome of one scenario with one configuration."""

    schema_version: SchemaVersion
    kind: str
    scenario: str
    config: str | None
