"""The answers of `extender simulate -o json` and `extender compare -o json`."""

from typing import Annotated

from msgspec import Meta

from extender.answers.answer_struct import Answer, AnswerPart, PodKey, ReasonCodes, Reasons, ResourceUse


class PodCounts(AnswerPart):
    """The numbers of pending pods before and after the simulation."""

    waiting: int
    placed: int
    unplaced: int


class PlannedPreemption(AnswerPart):
    """A node, and the pods that would be or were evicted there."""

    node: str
    victims: list[PodKey]


class Placement(AnswerPart):
    """The outcome for one pod, in queue order."""

    pod: PodKey
    node: Annotated[str | None, Meta(description="The node; null if the pod was not placed.")]
    message: Annotated[str | None, Meta(description="kube-scheduler's message; null if the pod was placed.")]
    reasons: Reasons
    reason_codes: ReasonCodes
    preemption: PlannedPreemption | None

    @property
    def reason(self) -> str:
        """The reasons, joined."""
        return ", ".join(self.reasons)


class UnplacedGroup(AnswerPart):
    """The pods that were not placed for the same reasons."""

    reason: Annotated[str, Meta(description="The reasons, joined by commas.")]
    reasons: Reasons
    reason_codes: ReasonCodes
    count: int
    pods: list[PodKey]


class UseBeforeAndAfter(AnswerPart):
    """The requested amounts of one resource in the cluster."""

    allocatable: int
    before: int
    after: int


class NodeUse(AnswerPart):
    """The use of one node by resource, without the resources that the node does not have."""

    name: str
    resources: dict[str, ResourceUse]

    @property
    def max_fraction(self) -> float:
        """The largest fraction over all resources."""
        return max((use.fraction for use in self.resources.values()), default=0.0)


class SimulationAnswer(Answer):
    """The placements of all pending pods."""

    seed: int
    nodes: int
    pods: PodCounts
    placements: list[Placement]
    unplaced: list[UnplacedGroup]
    evicted: list[PodKey]
    utilisation: dict[str, UseBeforeAndAfter]
    fullest: list[NodeUse]
    emptiest: list[NodeUse]
    not_recorded: list[str]
    warnings: list[str]


class PlacementInOneConfiguration(AnswerPart):
    """The outcome for a pod with one of two configurations."""

    node: Annotated[str | None, Meta(description="The node; null if the pod waits.")]
    message: str | None
    reasons: Reasons
    reason_codes: ReasonCodes


class PlacementDifference(AnswerPart):
    """A pod that the configurations place differently."""

    pod: PodKey
    first: PlacementInOneConfiguration
    second: PlacementInOneConfiguration


class SpreadResourceUse(ResourceUse):
    """The use of a resource, and the standard deviation of the used fraction over the nodes."""

    deviation: float


class DecisionTimes(AnswerPart):
    """The time of a decision in milliseconds."""

    p50: float
    p99: float


class ConfigurationOutcome(AnswerPart):
    """The outcome of one configuration."""

    placed: int
    waiting: int
    evicted: list[PodKey]
    used_nodes: int
    resources: dict[str, SpreadResourceUse]
    milliseconds: DecisionTimes


class ComparisonAnswer(Answer):
    """The differences between two configurations."""

    seed: int
    pods: int
    different: list[PlacementDifference]
    first: ConfigurationOutcome
    second: ConfigurationOutcome
