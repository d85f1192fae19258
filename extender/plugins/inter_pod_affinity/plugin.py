"""InterPodAffinity keeps pods near to, or apart from, other pods, by the topology domains of their nodes.

**Refuses**
    First of these that applies to a node:

    - `node(s) didn't match pod affinity rules`, unresolvable: a topology key of a required affinity term is missing on
      the node, or in the domain of one of the keys there is no pod that matches all terms. The first pod of a group
      that wants its own kind is let pass: no pod that matches all terms is in any domain, and the pod itself matches
      them all.
    - `node(s) didn't match pod anti-affinity rules`: a pod that a required anti-affinity term means is in the node's
      domain. A node without the key is in no domain.
    - `node(s) didn't satisfy existing pods anti-affinity rules`: a pod in the node's domain has a required
      anti-affinity term that means this pod.

    A pod whose terms cannot be read is turned away as a whole: `parsing pod: ...`, unresolvable.

**Scores**
    Sums, over the node's domains, the weights of the pod's preferred terms times the pods they mean (anti-affinity
    counts against the node), the weights of other pods' preferred terms that mean this pod, and `hardPodAffinityWeight`
    for each required affinity term of another pod that means this one. Normalized from the least to the greatest sum, 0
    to 100; all 0 if all are equal.

**Undone by**
    Pods that come, go or change labels, new nodes, and changed node labels, as far as a term is about them.

**Options** (InterPodAffinityArgs)
    `hardPodAffinityWeight` (1; 0 to 100), `ignorePreferredTermsOfExistingPods` (false): a pod without preferred terms
    is not scored. A pod with preferred terms is, other pods' terms included.

Source: B054 to B065, G036.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np

from extender.cluster.affinity import PodAffinityTerms, compile_affinity
from extender.cluster.arrays import IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.selecting import PodMatcher
from extender.cluster.shape import Shape
from extender.cluster.snapshot import NodeView, Snapshot
from extender.cluster.terms import CarriedTerm, TermKind
from extender.config.faults import Fault
from extender.config.gates import FeatureGates
from extender.config.strict import Int32
from extender.config.validate import invalid
from extender.framework.changes import Action, Change, Hint, Registration, Resource
from extender.framework.points import SKIP, SKIP_SCORE, PreFiltered, PreScored
from extender.framework.setup import Setup
from extender.framework.verdict import Code, Reason, Rejection, error, unresolvable
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.plugins.inter_pod_affinity.apart import MovedTally, Weights, weights
from extender.plugins.inter_pod_affinity.rules import rejections
from extender.plugins.inter_pod_affinity.tally import DomainTally

_UNPREPARED = Reason('error reading "PreFilterInterPodAffinity" from cycleState: not found', Code.ERROR)


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's options. Source: G036."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def faults(self, path: str, _gates: FeatureGates) -> list[Fault]:
        """A weight outside 0 to 100."""
        weight = self.hard_pod_affinity_weight
        if 0 <= weight <= 100:
            return []
        return [invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")]


@dataclass(slots=True)
class Placement:
    """The notes of a cycle: who is where that matters to the pod, by topology domain.

    Attributes:
        near: pods that match all of the pod's required affinity terms.
        apart: pods that match a required anti-affinity term of the pod, once a term.
        refusing: required anti-affinity terms of other pods that mean this one.
    """

    near: DomainTally
    apart: DomainTally
    refusing: DomainTally


@dataclass(frozen=True, slots=True)
class _Compiled:
    """The pod's terms with what to count for them.

    Attributes:
        near: pods that match all required affinity terms; None without such terms.
        near_keys: their topology keys, each once.
        apart: one matcher a required anti-affinity term.
        preferred: the preferred terms of both lists with their signed weights.
    """

    near: PodMatcher | None
    near_keys: tuple[str, ...]
    apart: tuple[tuple[CarriedTerm, PodMatcher], ...]
    preferred: tuple[tuple[CarriedTerm, PodMatcher, int], ...]


def _compiled(pod: PodQuery) -> _Compiled:
    def make() -> _Compiled:
        terms = pod.shape.affinity
        return _Compiled(
            near=PodMatcher(tuple(term.term.of_incoming() for term in terms.required)) if terms.required else None,
            near_keys=tuple(dict.fromkeys(term.topology_key for term in terms.required)),
            apart=tuple((term, PodMatcher((term.term.of_incoming(),))) for term in terms.required_anti),
            preferred=(
                *((term, PodMatcher((term.term.of_incoming(),)), term.weight) for term in terms.preferred),
                *((term, PodMatcher((term.term.of_incoming(),)), -term.weight) for term in terms.preferred_anti),
            ),
        )

    return pod.shape.remember(("InterPodAffinity", "compiled"), make)


class InterPodAffinity:
    """Affinity and anti-affinity between pods."""

    name: ClassVar[str] = "InterPodAffinity"
    options = InterPodAffinityArgs

    def __init__(self, setup: Setup[InterPodAffinityArgs]) -> None:
        self._ignore_existing = setup.options.ignore_preferred_terms_of_existing_pods
        self._node_actions = Action.ADD | Action.UPDATE_NODE_LABEL
        if "SchedulerQueueingHints" not in setup.gates:
            self._node_actions |= Action.UPDATE_NODE_TAINT
        self._hard_weight = setup.options.hard_pod_affinity_weight

    # -- filtering

    def pre_filter(self, pod: PodQuery, cluster: Snapshot) -> PreFiltered:
        """Look up who is where; skip a pod without required terms that no other pod refuses. Source: B055, B056."""
        terms = pod.shape.affinity
        if terms.fault is not None:
            return PreFiltered(unresolvable(f"parsing pod: {terms.fault}"))
        refusing = DomainTally()
        for carried, carriers in cluster.terms_about(pod.shape.number):
            if carried.kind is TermKind.REQUIRED_ANTI_AFFINITY:
                refusing.add(carried.topology_key, cluster.count_domains(carriers, carried.topology_key))
        if not terms.required and not terms.required_anti and refusing.is_empty:
            return SKIP
        compiled = _compiled(pod)
        near, apart = DomainTally(), DomainTally()
        if compiled.near is not None:
            there = cluster.counts(compiled.near)
            for key in compiled.near_keys:
                near.add(key, cluster.count_domains(there, key))
        for term, matcher in compiled.apart:
            apart.add(term.topology_key, cluster.count_domains(cluster.counts(matcher), term.topology_key))
        return PreFiltered(notes=Placement(near, apart, refusing))

    def clone(self, notes: Placement) -> Placement:
        """A copy that may be changed."""
        return Placement(notes.near.clone(), notes.apart.clone(), notes.refusing.clone())

    def add_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Placement) -> None:
        """Count *other* as standing on *row*. Source: B060."""
        _move(pod, other, row, cluster, notes, by=1)

    def remove_pod(self, pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Placement) -> None:
        """Count *other* as gone from *row*. Source: B060."""
        _move(pod, other, row, cluster, notes, by=-1)

    def filter(self, pod: PodQuery, nodes: NodeView, notes: Placement | None) -> Sequence[Rejection]:
        """Refuse nodes by the three rules, each node for the first that applies. Source: B057 to B059.

        As upstream, an error on every node if `pre_filter` is switched off.
        """
        if notes is None:
            return (Rejection(np.ones(len(nodes), dtype=np.bool_), _UNPREPARED),)
        near_keys = _compiled(pod).near_keys
        first = bool(near_keys) and notes.near.is_empty and _means_itself(pod, nodes.snapshot)
        return rejections(near_keys, first, nodes, (notes.near, notes.apart, notes.refusing))

    def filter_apart(
        self, pod: PodQuery, nodes: NodeView, notes: Placement, others: PodBatch, by: IntArray
    ) -> Sequence[Rejection]:
        """As `filter` with notes that `add_pod` and `remove_pod` changed, for every node on its own. Source: B060."""
        cluster, near_keys = nodes.snapshot, _compiled(pod).near_keys

        def weighed() -> tuple[Weights, ...]:
            return tuple(weights(others, keys_of) for keys_of in _counted(pod, cluster))

        tallies = (notes.near, notes.apart, notes.refusing)
        counts = others.remember((self, pod.shape), weighed)
        near, apart, refusing = (MovedTally(t, w, others, by) for t, w in zip(tallies, counts, strict=True))
        first = near.is_empty(nodes) if near_keys and _means_itself(pod, cluster) else False
        return rejections(near_keys, first, nodes, (near, apart, refusing))

    # -- scoring

    def pre_score(self, pod: PodQuery, nodes: NodeView) -> PreScored:
        """Sum the weights by domain; skip if no term meets any pod. Source: B061, B062."""
        cluster, terms = nodes.snapshot, pod.shape.affinity
        if self._ignore_existing and not _has_preferred(pod):
            return SKIP_SCORE
        if terms.fault is not None:
            return PreScored(status=error(f"failed to parse pod: {terms.fault}"))
        sums = DomainTally()
        met = False
        for term, matcher, own_weight in _compiled(pod).preferred:
            totals = cluster.count_domains(cluster.counts(matcher), term.topology_key)
            if totals.any():
                met = True
                sums.add(term.topology_key, totals * own_weight)
        for carried, carriers in cluster.terms_about(pod.shape.number):
            weight = self._weight(carried)
            if weight is None:
                continue
            totals = cluster.count_domains(carriers, carried.topology_key)
            if totals.any():
                met = True
                sums.add(carried.topology_key, totals * weight)
        return PreScored(notes=sums) if met else SKIP_SCORE

    def _weight(self, carried: CarriedTerm) -> int | None:
        """What a term of another pod is worth when it means this one; None if it is not for scoring."""
        match carried.kind:
            case TermKind.REQUIRED_AFFINITY:
                return self._hard_weight or None
            case TermKind.PREFERRED_AFFINITY:
                return carried.weight
            case TermKind.PREFERRED_ANTI_AFFINITY:
                return -carried.weight
            case TermKind.REQUIRED_ANTI_AFFINITY:
                return None

    def score(self, _pod: PodQuery, nodes: NodeView, notes: DomainTally | None) -> IntArray:
        """The sum over the node's domains; of any size and sign. Source: B063.

        Raises:
            LookupError: `pre_score` is switched off; as upstream, nothing can be scored then.
        """
        if notes is None:
            raise LookupError('failed to read "PreScoreInterPodAffinity" from cycleState: not found')
        scores = np.zeros(len(nodes), dtype=np.int64)
        for key in notes.keys:
            scores += notes.at(nodes, key)
        return scores

    def normalize(self, _pod: PodQuery, raw: IntArray, _nodes: NodeView, _notes: DomainTally) -> IntArray:
        """Spread the sums over 0 to 100; all 0 where they do not differ. Source: B063."""
        if not len(raw):
            return raw
        least, most = raw.min(), raw.max()
        if least == most:
            return np.zeros(len(raw), dtype=np.int64)
        normalized: IntArray = (100.0 * ((raw - least) / float(most - least))).astype(np.int64)
        return normalized

    # -- events

    def events(self) -> Sequence[Registration]:
        """Pods that come, go or change labels; nodes that come or change labels. Source: B065."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        return (
            Registration(Resource.POD, pods, _after_pod),
            Registration(Resource.NODE, self._node_actions, _after_node),
        )


def _has_preferred(pod: PodQuery) -> bool:
    """Whether the spec has preferred terms, readable or not."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(side and side.preferred_during_scheduling_ignored_during_execution for side in sides)


def _means_itself(pod: PodQuery, cluster: Snapshot) -> bool:
    """Whether the pod matches all its own required affinity terms."""
    matcher = _compiled(pod).near
    namespace_labels = cluster.namespace_labels(pod.namespace)
    return matcher is not None and matcher.matches(pod.namespace, pod.labels, namespace_labels)


def _counted(pod: PodQuery, cluster: Snapshot) -> tuple[Callable[[Shape], Iterator[str]], ...]:
    """The topology keys under which a pod of some shape counts in each tally of `Placement`, once each time it does."""
    compiled, spaces = _compiled(pod), cluster.namespace_labels
    own_space = spaces(pod.namespace) or {}

    def near(other: Shape) -> Iterator[str]:
        if compiled.near is not None and compiled.near.matches(other.namespace, other.labels, spaces(other.namespace)):
            yield from compiled.near_keys

    def apart(other: Shape) -> Iterator[str]:
        for term, matcher in compiled.apart:
            if matcher.matches(other.namespace, other.labels, spaces(other.namespace)):
                yield term.topology_key

    def refusing(other: Shape) -> Iterator[str]:
        for carried in other.affinity.required_anti:
            if carried.term.matches(pod.namespace, pod.labels, own_space):
                yield carried.topology_key

    return near, apart, refusing


def _move(pod: PodQuery, other: PlacedPod, row: int, cluster: Snapshot, notes: Placement, *, by: int) -> None:
    labels = cluster.view().label
    for tally, keys_of in zip((notes.near, notes.apart, notes.refusing), _counted(pod, cluster), strict=True):
        for key in keys_of(other.shape):
            tally.bump(key, int(labels(key)[row]), by)


def _matches_all(terms: tuple[CarriedTerm, ...], pod: Pod) -> bool:
    """Whether *pod* matches all terms, of which there must be one; for hints, which know no namespace labels."""
    meta = pod.metadata
    return bool(terms) and all(carried.term.matches(meta.namespace, meta.labels, {}) for carried in terms)


def _waits(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.status.nominated_node_name


def _after_pod(pod: PodQuery, change: Change) -> Hint:
    """Source: B065."""
    old: Pod | None = change.old
    new: Pod | None = change.new
    if old is not None and new is not None and new.metadata.uid == pod.pod.metadata.uid:
        return Hint.QUEUE
    if _waits(old) or _waits(new):
        return Hint.SKIP
    terms = pod.shape.affinity
    return Hint.QUEUE if terms.fault is not None or _pod_helps(terms, pod.pod, old, new) else Hint.SKIP


def _pod_helps(terms: PodAffinityTerms, waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    if old is not None and new is not None:
        comes_near = not _matches_all(terms.required, old) and _matches_all(terms.required, new)
        return comes_near or (_matches_all(terms.required_anti, old) and not _matches_all(terms.required_anti, new))
    if new is not None:
        return _matches_all(terms.required, new)
    if old is None or _matches_all(terms.required_anti, old):
        return True
    theirs = compile_affinity(old)
    return theirs.fault is not None or _matches_all(theirs.required_anti, waiting)


def _after_node(pod: PodQuery, change: Change) -> Hint:
    """Source: B065."""
    old: Node | None = change.old
    new: Node = change.new
    terms = pod.shape.affinity
    after = new.metadata.labels
    near = {term.topology_key for term in terms.required}
    apart = {term.topology_key for term in terms.required_anti}
    if old is None:
        helps = bool(apart) or not near.isdisjoint(after)
    else:
        before = old.metadata.labels
        helps = any(key in after and before.get(key) != after[key] for key in near) or any(
            key in before and before[key] != after.get(key) for key in apart
        )
    return Hint.QUEUE if helps or terms.fault is not None else Hint.SKIP
