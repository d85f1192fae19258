"""The answer of `extender rebalance -o json`."""

from typing import Annotated

from msgspec import Meta, field

from extender.answers.answer_struct import Answer, AnswerPart, PodKey


class PodPlacement(AnswerPart):
    """A pod that gets a node."""

    pod: PodKey
    node: str


class RebalanceStep(AnswerPart):
    """One change of the plan, in order."""

    action: Annotated[str, Meta(description="evict, cordon or uncordon.")]
    pod: Annotated[str | None, Meta(description="The pod to evict; null for a change of a node.")]
    node: Annotated[str | None, Meta(description="The node to change; null for an eviction.")]
    source: Annotated[str | None, Meta(description="The node that the pod leaves.")] = field(name="from")
    to: Annotated[str | None, Meta(description="The node of the new pod.")]
    equal_nodes: Annotated[list[str], Meta(description="Nodes that kube-scheduler may take as well.")]
    placed: Annotated[list[PodPlacement], Meta(description="Waiting pods that get a node after this change.")]
    command: Annotated[str, Meta(description="The command for a shell.")]


class UnplacedPod(AnswerPart):
    """A pod for which there is no plan."""

    pod: PodKey
    message: str


class EmptiedNode(AnswerPart):
    """A node that the plan empties."""

    node: str
    moves: int
    price: float | None


class RetainedNode(AnswerPart):
    """A node that cannot be emptied."""

    node: str
    pod: Annotated[str | None, Meta(description="The pod that cannot leave.")]
    reason: str
    price: float | None


class RuleViolation(AnswerPart):
    """A pod whose node violates a hard rule."""

    pod: PodKey
    node: str
    plugin: str
    reason: Annotated[str, Meta(description="kube-scheduler's text.")]
    reason_code: Annotated[str, Meta(description="The code of the reason.")]


class RemainingViolation(RuleViolation):
    """A violation that the plan does not end."""

    obstacle: str


class RebalanceAnswer(Answer):
    """An ordered plan of changes. Fields of other questions are empty lists."""

    question: Annotated[str, Meta(description="for, empty or fix.")]
    moves: int
    steps: list[RebalanceStep]
    complete: Annotated[bool, Meta(description="False if the search reached its limits.")]
    placed_before: list[PodPlacement]
    pods: list[PodKey]
    unplaced: list[UnplacedPod]
    emptied: list[EmptiedNode]
    retained: list[RetainedNode]
    saved: float | None
    violations: list[RuleViolation]
    remaining: list[RemainingViolation]
