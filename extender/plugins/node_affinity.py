"""NodeAffinity: node selectors and node affinity of pods, and an affinity that the configuration adds to all pods.

**Refuses** for good a node that does not match the pod's `spec.nodeSelector` and required node affinity, or the
required part of `addedAffinity`. A term that cannot be read matches no node. A pod whose terms all ask for nodes by
`metadata.name` is looked for on those nodes only; if they contradict each other the pod is refused as a whole.

**Scores** nodes by the summed weights of the preferred terms that match, of the pod and of `addedAffinity`; the node
with the most gets 100. Not asked where neither has preferred terms. A preferred term that cannot be read ends the
attempt as an error.

**Undone by** a new node that matches, or a change of labels that makes a node match.

**Options** `addedAffinity`: a node affinity, required and preferred, that holds for every pod beside its own.

Source: B008, B020 to B026, G037.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from extender.cluster.arrays import IntArray
from extender.cluster.node_matching import required_affinity, required_affinity_mask, term_mask, terms_mask
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.paths import child, item
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.normalize import in_proportion
from extender.framework.points import PASS, SKIP, SKIP_SCORE, PreFiltered, PreScored, Reads
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, Status, error, unresolvable
from extender.objects.affinity import NodeAffinity as Affinity
from extender.objects.affinity import NodeSelectorTerm
from extender.objects.matching import NodeTerms, PreferredTerm, compile_node_selector, compile_preferred, compile_term
from extender.objects.node import Node

_ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", Code.UNRESOLVABLE)
_UNMATCHED = Reason("node(s) didn't match Pod's node affinity/selector", Code.UNRESOLVABLE)
_CONFLICT = unresolvable("pod affinity terms conflict")
_NAME_FIELD = "metadata.name"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityOptions(msgspec.Struct, frozen=True, rename="camel"):
    """Options of NodeAffinity. Source: B025."""

    added_affinity: Affinity | None = None

    def faults(self, path: str, gates: FeatureGates) -> list[Fault]:  # noqa: ARG002  all options have this signature
        """Terms that cannot be read. Source: G037."""
        added = self.added_affinity
        if added is None:
            return []
        where = child(path, "addedAffinity")
        found: list[Fault] = []
        required = added.required_during_scheduling_ignored_during_execution
        for index, term in enumerate(required.node_selector_terms if required else ()):
            found += _term_faults(term, item(child(where, f"{_REQUIRED}.nodeSelectorTerms"), index))
        for index, preferred in enumerate(added.preferred_during_scheduling_ignored_during_execution):
            if preferred.weight:
                found += _term_faults(preferred.preference, item(child(where, _PREFERRED), index))
        return found


def _term_faults(term: NodeSelectorTerm, path: str) -> list[Fault]:
    compiled = compile_term(term)
    if compiled is None:
        return []
    split = (text.partition(": ") for text in compiled.errors)
    return [Fault(child(path, place), message) for place, _, message in split]


class NodeAffinity:
    """Looks requirements up among the values of their labels; no node is visited one by one."""

    name: ClassVar[str] = "NodeAffinity"
    kept_for_kin: ClassVar[bool] = True
    options: ClassVar[type[NodeAffinityOptions]] = NodeAffinityOptions
    filter_reads: ClassVar[Reads] = Reads.NODE
    score_reads: ClassVar[Reads] = Reads.NODE

    def __init__(self, setup: Setup[NodeAffinityOptions]) -> None:
        added = setup.options.added_affinity or Affinity()
        required = added.required_during_scheduling_ignored_during_execution
        self._enforced: NodeTerms | None = None if required is None else compile_node_selector(required)
        self._has_added_preferred = bool(added.preferred_during_scheduling_ignored_during_execution)
        self._added_preferred = compile_preferred(added.preferred_during_scheduling_ignored_during_execution)

    # -- filter

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:  # noqa: ARG002  the point's signature
        """Source: B020, B021."""
        if self._enforced is None and not pod.shape.spec.node_selector and _own_terms(pod) is None:
            return SKIP
        return pod.shape.remember((self.name, "narrowed"), lambda: _narrowed(_own_terms(pod) or ()))

    def pre_filter_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always: no node is looked at."""
        return True

    def filter_key(self, pod: PodQuery) -> Hashable | None:
        """What the pod requires; a pod that wants nodes by name is asked about those few only and is not kept."""
        required = required_affinity(pod)
        by_name = required.terms is not None and any(term.fields for term in required.terms.terms)
        return None if by_name else required

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Any) -> Sequence[Rejection]:  # noqa: ARG002
        """Source: B022."""
        own = ~required_affinity_mask(nodes, pod)
        if self._enforced is None:
            return (Rejection(own, _UNMATCHED),)
        enforced = terms_mask(nodes, self._enforced)
        return (Rejection(~enforced, _ENFORCED), Rejection(own & enforced, _UNMATCHED))

    # -- score

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:  # noqa: ARG002  the point's signature
        """Source: B023."""
        affinity = _own_affinity(pod)
        if not self._has_added_preferred and not affinity.preferred_during_scheduling_ignored_during_execution:
            return SKIP_SCORE
        preferred = _preferred(pod)
        return PreScored(status=preferred) if isinstance(preferred, Status) else PreScored()

    def pre_score_kept(self, pod: PodQuery) -> bool:  # noqa: ARG002  the point's signature
        """Always."""
        return True

    def score_key(self, pod: PodQuery) -> Hashable | None:
        """The pod's preferred terms."""
        preferred = _preferred(pod)
        return None if isinstance(preferred, Status) else preferred

    def score(self, pod: PodQuery, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002  the point's signature
        """Source: B024.

        Raises:
            ValueError: a term cannot be read, and `pre_score`, which says so first, is switched off.
        """
        own = _preferred(pod)
        if isinstance(own, Status):
            raise ValueError(own.message)  # noqa: TRY004  the term is wrong, not a type
        total = np.zeros(len(nodes), dtype=np.int64)
        for preferred in (*self._added_preferred, *own):
            total += term_mask(nodes, preferred.term) * np.int64(preferred.weight)
        return total

    def normalize(self, pod: PodQuery, raw: IntArray, nodes: NodeView, notes: Any) -> IntArray:  # noqa: ARG002
        """Source: B024."""
        return in_proportion(raw)

    # -- events

    def events(self) -> Sequence[Registration]:
        """Source: B026."""
        return (Registration(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),)

    def _after_node_change(self, pod: PodQuery, change: Change) -> Hint:
        node: Node = change.new
        if self._enforced is not None and not self._enforced.matches(node.metadata.labels, node.metadata.name):
            return Hint.SKIP
        now = _matches(pod, node)
        if now is not True:
            return Hint.QUEUE if now is None else Hint.SKIP
        before = False if change.old is None else _matches(pod, change.old)
        return Hint.SKIP if before else Hint.QUEUE


def _matches(pod: PodQuery, node: Node) -> bool | None:
    """Whether *node* is what *pod* requires; None where a term that cannot be read leaves it open."""
    required, labels = required_affinity(pod), node.metadata.labels
    if required.matches(labels, node.metadata.name):
        return True
    unread = required.terms is not None and bool(required.terms.errors)
    return None if unread and required.selector.matches(labels) else False


def _own_affinity(pod: PodQuery) -> Affinity:
    affinity = pod.shape.spec.affinity
    return (affinity and affinity.node_affinity) or Affinity()


def _own_terms(pod: PodQuery) -> tuple[NodeSelectorTerm, ...] | None:
    required = _own_affinity(pod).required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms


def _narrowed(terms: tuple[NodeSelectorTerm, ...]) -> PreFiltered:
    """The nodes that *terms* ask for by name, if all of them do."""
    names: frozenset[str] = frozenset()
    for term in terms:
        wanted = [
            frozenset(rule.values) for rule in term.match_fields if rule.key == _NAME_FIELD and rule.operator == "In"
        ]
        if not wanted:
            return PASS
        names |= frozenset.intersection(*wanted)
    if not terms:
        return PASS
    return PreFiltered(nodes=names) if names else PreFiltered(status=_CONFLICT)


def _preferred(pod: PodQuery) -> tuple[PreferredTerm, ...] | Status:
    return pod.shape.remember(("NodeAffinity", "preferred"), lambda: _compiled(_own_affinity(pod)))


def _compiled(affinity: Affinity) -> tuple[PreferredTerm, ...] | Status:
    try:
        return compile_preferred(affinity.preferred_during_scheduling_ignored_during_execution)
    except ValueError as fault:
        return error(str(fault))
