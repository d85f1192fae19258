"""The verbs: what is asked about a pod and nodes, decided by the same functions as everywhere, answered in kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final, Protocol

import msgspec
import numpy as np

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide.admission import held_back
from extender.decide.engine import Engine
from extender.decide.feasible import feasible
from extender.decide.prefiltering import PreFilterOutcome
from extender.decide.rank import Ranking, rank
from extender.framework.profiles import Profile
from extender.framework.verdict import Status
from extender.objects.extender_v1 import FilterResult, PreemptionResult
from extender.objects.pod import Pod
from extender.preemption.offered import settle
from extender.web.asked import Asked, by_names, by_nodes
from extender.web.offers import answered, uids
from extender.web.priorities import Priorities
from extender.web.record import Record
from extender.web.refusing import ACCEPTED, Refused, by_node, by_status
from extender.web.scaling import ScoreRange, scaled
from extender.web.wire import ExtenderArgs, PreemptionArgs, RequestError

NOTHING_ASKED = "neither Nodes nor NodeNames are set; want one of them"
NOTHING_OFFERED = "neither NodeNameToVictims nor NodeNameToMetaVictims are set; want one of them"


_MOST_SHORT: Final = np.iinfo(np.int16).max
_NONE = np.empty(0, dtype=np.int64)


class Seen(Protocol):
    """Hears what passes through the verbs (`observe.verbs.VerbMetrics`)."""

    def nodes(self, verb: str, asked: int, answered: int, unknown: int) -> None:
        """How many nodes were asked about, let through or scored, and not known."""

    def whole(self, verb: str) -> None:
        """Whole nodes came that need not, as the cluster is known: names would do, and are much faster."""

    def refused(self, counted: Mapping[tuple[str, str], int]) -> None:
        """How many nodes each plugin was the first to refuse, and with which words."""

    def failed(self, verb: str) -> None:
        """Something went wrong while deciding."""


class Unseen:
    """Hears and says nothing."""

    def nodes(self, verb: str, asked: int, answered: int, unknown: int) -> None:
        """Nothing."""

    def whole(self, verb: str) -> None:
        """Nothing."""

    def refused(self, counted: Mapping[tuple[str, str], int]) -> None:
        """Nothing."""

    def failed(self, verb: str) -> None:
        """Nothing."""


def _as_sent(pod: Pod) -> Pod:
    return pod


def _well() -> str:
    return ""


def _no_problems(_: msgspec.Struct) -> Iterable[tuple[str, str]]:
    return ()


@dataclass(slots=True)
class Intake:
    """What is done to a pod before it is decided on; once, if the same pod is asked about twice in a row.

    Attributes:
        completed: fills in what an API server would have; a pod from a scheduler comes back as it is.
        problems: the values in it that cannot be understood, each with its field path.
    """

    completed: Callable[[Pod], Pod] = _as_sent
    problems: Callable[[Pod], Iterable[tuple[str, str]]] = _no_problems
    _last: tuple[Pod, Pod] | None = field(init=False, default=None, repr=False)

    def taken(self, pod: Pod) -> Pod:
        """*pod*, ready to be decided on.

        Raises:
            RequestError: 400, with the first field that is wrong.
        """
        if self._last is None or self._last[0] is not pod:
            for path, message in self.problems(pod):
                raise RequestError(400, f"Pod.{path}: {message}")
            self._last = pod, self.completed(pod)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class Verbs:
    """Answers requests about one cluster. Not thread-safe: it shares its engine and the cluster with one event loop.

    Attributes:
        state: the cluster; never written.
        profiles: by scheduler name.
        default: the profile for pods of any other scheduler.
        engine: decides about the cluster as it is.
        imagining: decides about clusters made of nodes that were sent; it keeps no answers.
        intake: what is done to a pod first.
        score_range: how prioritize answers.
        seen: hears what passes through.
        wrong: why nothing can be decided now, as the cluster is not known yet; empty if it can.
        record: remembers decisions.
    """

    state: ClusterState
    profiles: Mapping[str, Profile]
    default: Profile
    engine: Engine
    imagining: Engine
    intake: Intake = field(default_factory=Intake)
    score_range: ScoreRange = ScoreRange.TEN
    seen: Seen = field(default_factory=Unseen)
    wrong: Callable[[], str] = _well
    record: Record = field(default_factory=Record)

    def filter(self, args: ExtenderArgs) -> FilterResult:
        """Which of the nodes asked about can take the pod, and why the others cannot.

        Every node is in exactly one part of the answer, nodes that are not known among FailedNodes; a node that was not
        asked about is in none. Nothing is reserved.

        Raises:
            RequestError: the request cannot be understood.
        """
        if wrong := self.wrong():
            return FilterResult(error=wrong)
        asked = self._asked("filter", args)
        query, profile = self._query(args.pod, asked)
        refused = _judged(query, profile, asked)
        if isinstance(refused, Status):
            self.seen.failed("filter")
            self.record.failed(args.pod, "filter", refused.message)
            return FilterResult(error=refused.message)
        self.record.filtered(args.pod, profile.scheduler_name, asked, refused)
        kept: Sequence[int] = ()
        failed: dict[str, str] = {}
        final: dict[str, str] = {}
        name_of = asked.names.__getitem__
        for saying, places in refused.groups():
            if saying is ACCEPTED:
                kept = places
            else:
                (final if saying.final else failed).update(zip(map(name_of, places), repeat(saying.text)))
        self.seen.nodes("filter", len(asked.names), len(kept), asked.unknown)
        self.seen.refused(refused.counted)
        if args.nodes is None:
            names = asked.names if len(kept) == len(asked.names) else list(map(name_of, kept))
            return FilterResult(node_names=names, failed_nodes=failed, failed_and_unresolvable_nodes=final)
        nodes = args.nodes.only(list(map(args.nodes.raw.__getitem__, kept)))
        return FilterResult(nodes=nodes, failed_nodes=failed, failed_and_unresolvable_nodes=final)

    def prioritize(self, args: ExtenderArgs) -> Priorities:
        """How well each of the nodes asked about suits the pod, best first; see `scaling`.

        Scores are normalised over the nodes asked about that can take the pod; the others, and unknown ones, have 0.

        Raises:
            RequestError: the request cannot be understood (400), scoring failed (500), or the cluster is not known yet
                (503): then kube-scheduler goes on without our scores. Source: F037.
        """
        self._insist()
        asked = self._asked("prioritize", args)
        query, profile = self._query(args.pod, asked)
        engine = asked.engine
        able = asked.mask()
        before = PreFilterOutcome()
        ranking = Ranking(_NONE, _NONE)
        status = held_back(query, asked.cluster, profile, engine)
        if status is None:
            found = feasible(query, asked.cluster, profile, engine)
            status, before = found.error, found.before
            able &= found.feasible
        else:
            able[:] = False
            status = None if status.rejected else status
        totals = np.full(len(able) + 1, -1, dtype=np.int64)  # the last entry is for unknown nodes, whose row is -1
        if status is None and able.any():
            ranking = rank(query, asked.cluster, profile, engine, able, before)
            status = ranking.error
            totals[ranking.rows] = ranking.totals
        if status is not None:
            self.seen.failed("prioritize")
            self.record.failed(args.pod, "prioritize", status.message)
            raise RequestError(500, status.message)
        answer = self._scored(asked, totals[asked.rows])
        self.record.prioritized(args.pod, profile.scheduler_name, asked, ranking, answer)
        return answer

    def preempt(self, args: PreemptionArgs) -> PreemptionResult:
        """On which of the nodes offered evicting pods makes room for the pod, and which pods must go there.

        See `preemption.offered` for what becomes of an offer. A node that is left out is one where it does not help.

        Raises:
            RequestError: the request cannot be understood (400), deciding failed (500), or the cluster is not known yet
                (503).
        """
        self._insist()
        if args.victims is None:
            raise RequestError(400, NOTHING_OFFERED)
        cluster = self.state.snapshot()
        ready = self.intake.taken(args.pod)
        profile = self.profiles.get(ready.spec.scheduler_name, self.default)
        settled = settle(cluster.query(ready), cluster, profile, self.engine, uids(args.victims))
        if settled.error is not None:
            self.seen.failed("preempt")
            self.record.failed(args.pod, "preempt", settled.error.message)
            raise RequestError(500, settled.error.message)
        result = answered(settled, args.victims)
        self.record.preempted(args.pod, profile.scheduler_name, args.victims, result.node_name_to_meta_victims)
        unknown = sum(cluster.row(name) is None for name in args.victims)
        self.seen.nodes("preempt", len(args.victims), len(result.node_name_to_meta_victims), unknown)
        return result

    def _insist(self) -> None:
        if wrong := self.wrong():
            raise RequestError(503, wrong)

    def _scored(self, asked: Asked, totals: Any) -> Priorities:
        """The answer for *totals* (int64, one a node asked about, -1 without one)."""
        rated = totals >= 0
        scores = np.zeros(len(totals), dtype=np.int64)
        if self.score_range is ScoreRange.RAW:
            scores[rated] = totals[rated]
        else:
            scores[rated] = scaled(totals[rated], 0 if rated.all() else 1)
        narrow = np.int16 if totals.max(initial=0) <= _MOST_SHORT else np.int64  # which takes a tenth of the time
        best_first = np.argsort((-totals).astype(narrow), kind="stable")
        self.seen.nodes("prioritize", len(totals), int(rated.sum()), asked.unknown)
        return Priorities(asked.listed, best_first, scores[best_first])

    def _asked(self, verb: str, args: ExtenderArgs) -> Asked:
        cluster = self.state.snapshot()
        if args.names is not None:
            return by_names(args.names, cluster, self.engine)
        if args.nodes is not None:
            if len(cluster):
                self.seen.whole(verb)
            return by_nodes(args.nodes, cluster, self.imagining)
        raise RequestError(400, NOTHING_ASKED)

    def _query(self, pod: Pod, asked: Asked) -> tuple[PodQuery, Profile]:
        ready = self.intake.taken(pod)
        return asked.cluster.query(ready), self.profiles.get(ready.spec.scheduler_name, self.default)


def _judged(query: PodQuery, profile: Profile, asked: Asked) -> Refused | Status:
    """What is said about every node asked about, or the status if something went wrong."""
    held = held_back(query, asked.cluster, profile, asked.engine)
    if held is not None:
        return by_status(held, asked) if held.rejected else held
    found = feasible(query, asked.cluster, profile, asked.engine, reasons=True)
    if found.error is not None:
        return found.error
    if found.before.status is not None:
        return by_status(found.before.status, asked)
    return by_node(found, asked)
