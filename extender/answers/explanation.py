"""The answer of `extender explain -o json`."""

from typing import Annotated

from msgspec import Meta, field

from extender.answers.answer_struct import Answer, AnswerPart, PodKey, ReasonCodes, Reasons


class ReasonsOfPlugin(AnswerPart):
    """The reasons of a plugin that keeps a pod out of the queue."""

    plugin: str
    reasons: Reasons
    reason_codes: ReasonCodes


class StatusOfPlugin(AnswerPart):
    """The status of a plugin for the pod, or for one node."""

    code: Annotated[str, Meta(description="Upstream's status code, such as Unschedulable.")]
    plugin: str
    reasons: Reasons
    reason_codes: ReasonCodes


class FilterStatus(AnswerPart):
    """The status of one Filter plugin for one node."""

    code: str
    reasons: Reasons
    reason_codes: ReasonCodes


class PreFilterOutcome(AnswerPart):
    """The result of the PreFilter plugins."""

    status: StatusOfPlugin | None
    nodes: Annotated[list[str] | None, Meta(description="The nodes that the plugins allow; null for all nodes.")]


class NodeOutcome(AnswerPart):
    """The result of all Filter plugins for one node."""

    filters: Annotated[dict[str, FilterStatus], Meta(description="The plugins that reject the node, by name.")]
    first_failure: Annotated[
        StatusOfPlugin | None, Meta(description="What kube-scheduler reports; null if the node fits.")
    ]


class PluginScore(AnswerPart):
    """The score of one plugin for one node."""

    raw: int
    normalized: int
    weighted: int


class NodeScore(AnswerPart):
    """The scores of one feasible node."""

    total: int
    plugins: dict[str, PluginScore]


class PreemptionCandidate(AnswerPart):
    """The pods that would be evicted on one node."""

    victims: list[PodKey]
    num_pdb_violations: int = field(name="numPDBViolations")


class PreemptionOutcome(AnswerPart):
    """The result of the plugin DefaultPreemption."""

    code: str
    reasons: Reasons
    reason_codes: ReasonCodes
    nominated_node: Annotated[str, Meta(description="The chosen node; empty if preemption does not help.")]
    victims: list[PodKey]
    ties: Annotated[list[str], Meta(description="Nodes that are as good as the chosen one.")]
    candidates: dict[str, PreemptionCandidate]


class GroupMemberResult(AnswerPart):
    """A pending member of a pod group on a placement."""

    pod: PodKey
    node: Annotated[str | None, Meta(description="Where it fits beside the members before it; null if nowhere.")]
    message: str | None


class GroupPlacementResult(AnswerPart):
    """A placement of a pod group, with the members that fit on it."""

    name: Annotated[str | None, Meta(description="The topology domain; null for all nodes.")]
    fitting: Annotated[int, Meta(description="How many pending members fit.")]
    members: list[GroupMemberResult]


class NearestNode(AnswerPart):
    """A rejected node that is close to fitting."""

    node: str
    details: Annotated[list[str], Meta(description="The reasons of its rejection, with amounts.")]


class GroupShortfallResult(AnswerPart):
    """What a waiting pod group lacks."""

    min_count: Annotated[int, Meta(description="The pods that must have a node at the same time.")]
    pods: Annotated[int, Meta(description="The pods of the group.")]
    placed: Annotated[int, Meta(description="The pods that have a node.")]
    fitting: Annotated[int, Meta(description="The pending pods that fit on the best placement.")]
    missing: Annotated[int, Meta(description="The pods of minCount that neither have a node nor fit.")]
    placements: Annotated[list[GroupPlacementResult], Meta(description="The nearest placements, best first.")]
    rejected_pod: Annotated[str | None, Meta(description="The first member that does not fit on the best placement.")]
    nearest_nodes: Annotated[list[NearestNode], Meta(description="The nodes nearest to fitting for this member.")]


class GroupOfTreeResult(AnswerPart):
    """A group of a tree of pod groups."""

    name: str
    parent: Annotated[str | None, Meta(description="The composite pod group above; null for the root.")]
    composite: Annotated[bool, Meta(description="Whether it is a composite pod group.")]
    min_count: Annotated[int, Meta(description="The pods or child groups that must be scheduled at the same time.")]
    members: Annotated[int, Meta(description="Its pods or child groups.")]
    scheduled: Annotated[int, Meta(description="Its pods with a node, or its child groups that fit.")]
    fits: Annotated[bool, Meta(description="Whether it can be scheduled, if the groups above it can be.")]
    message: Annotated[str | None, Meta(description="Why not; null if it can be.")]


class PodGroupResult(AnswerPart):
    """The result of scheduling the pod's group."""

    name: str
    members: int
    scheduled: bool
    waits_for_preemption: bool
    placement: str | None
    message: str
    node: str | None
    pod_message: str | None
    victims: list[PodKey]
    shortfall: Annotated[
        GroupShortfallResult | None, Meta(description="What the group lacks; null if it can be scheduled now.")
    ]
    tree: Annotated[
        list[GroupOfTreeResult] | None,
        Meta(description="The groups of its composite pod group, the root first; null without a composite pod group."),
    ]


class AssignedNodeResult(AnswerPart):
    """The node of a placed pod, compared with a new decision."""

    node: str
    rank: int | None
    total: int | None
    best_total: int | None
    rejection: Annotated[str | None, Meta(description="Why the node would reject the pod now; null if it fits.")]
    stays: Annotated[bool, Meta(description="Whether the pod could go to the same node again.")]


class PodExplanationResult(AnswerPart):
    """The explanation of one pod."""

    pre_enqueue: ReasonsOfPlugin | None
    pre_filter: PreFilterOutcome | None
    nodes: dict[str, NodeOutcome]
    feasible: Annotated[list[str], Meta(description="The nodes that fit.")]
    scores: Annotated[dict[str, NodeScore], Meta(description="The scores of the feasible nodes, by node.")]
    best: Annotated[list[str], Meta(description="The nodes with the highest total.")]
    filter_message: str | None
    message: Annotated[
        str | None,
        Meta(description="kube-scheduler's message; null if the pod fits, or if `preEnqueue` rejects it."),
    ]
    preemption: PreemptionOutcome | None
    pod_group: PodGroupResult | None
    assigned: AssignedNodeResult | None
    not_recorded: Annotated[list[str], Meta(description="Missing kinds on which the answer depends.")]
    warnings: list[str]


class ExplanationAnswer(Answer):
    """The explanations of pods, by `namespace/name`."""

    pods: dict[PodKey, PodExplanationResult]
