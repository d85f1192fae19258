"""A scheduling cycle in which HTTP extenders have their say: after filtering, beside scoring, and about victims.

The steps are those of `decide.cycle`; only the waiting is done here. Pods are handled one at a time as ever, and the
snapshot is held while an answer is awaited, so the decision is made on one moment. The world goes on meanwhile: before
a node is given out, it is judged once more on the newest state. Source: A098, F026 to F038.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import msgspec
import numpy as np

from extender.client.extender_calls import ExtenderError
from extender.client.extenders import HttpExtender, Passed, Question, Returned
from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.batches import PodBatch
from extender.cluster.hypothesis import Hypothesis
from extender.cluster.pods import PlacedPod, PodQuery
from extender.cluster.snapshot import Snapshot
from extender.decide.cycle import best_of, hopeless, look, only_one, unplaced
from extender.decide.decision import Decision, Placed, Unplaced
from extender.decide.engine import Engine
from extender.decide.feasible import Feasibility, Refusal, feasible
from extender.decide.rank import Ranking, rank
from extender.decide.rescue import Answers, Attempt, Rescue, ask
from extender.framework.columns import ColumnCache
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Reason, Status
from extender.loop.desk import Desk, log
from extender.loop.negotiating import negotiated, skipped
from extender.objects.extender_v1 import HostPriority
from extender.preemption.plan import PreemptionPlan
from extender.queueing.hints import EXTENDER

_SCALE = 10
"""What an extender's score counts, beside its weight: its scores go to 10, ours to 100. Source: F024, F036."""

_OVERTAKEN = "the cluster changed while extenders were asked, and no node that they let pass takes the pod any more"


class Consultation:
    """One cycle of one pod."""

    def __init__(
        self,
        desk: Desk,
        query: PodQuery,
        profile: Profile,
        extenders: Sequence[HttpExtender],
        cluster: Snapshot,
        within: frozenset[str] | None = None,
    ) -> None:
        """Nobody is asked yet.

        Args:
            desk: the scheduler's.
            query: the pod.
            profile: of its scheduler name.
            extenders: those that are interested in it, in order.
            cluster: as it is, or might be.
            within: names of the only nodes that may be chosen; None: all.
        """
        self._desk, self._query, self._profile, self._extenders = desk, query, profile, extenders
        self._engine = desk.engines[profile.scheduler_name]
        self._cluster, self._within = cluster, within
        self._given: dict[str, Returned] = {}

    async def settled(self) -> Decision:
        """As `decided`, for a cluster that went on meanwhile."""
        decision, found = await self._sought()
        return self._still(decision, found) if isinstance(decision, Placed) else decision

    async def decided(self) -> Decision:
        """Where the pod goes, or why it goes nowhere."""
        return (await self._sought())[0]

    async def _sought(self) -> tuple[Decision, Feasibility]:
        found, evaluated = await self._found()
        if not found.any:
            return await self._nowhere(found), found
        if found.count == 1:
            return only_one(self._cluster, found, evaluated), found
        ranking = await self._ranked(found)
        return best_of(self._cluster, found, ranking, evaluated, self._desk.chance), found

    # -- filtering

    async def _found(self) -> tuple[Feasibility, int]:
        """The nodes that plugins and extenders let pass: the one the pod is nominated for, else any. Source: A097."""
        cluster = self._cluster
        sought = partial(
            look,
            self._query,
            cluster,
            self._profile,
            self._engine,
            self._desk.search,
            within=self._within,
            reasons=True,
        )
        found, evaluated = sought()
        nominated = cluster.row(self._query.pod.status.nominated_node_name)
        if found.any and nominated is not None and found.feasible[nominated]:
            passed = await self._passed(found)
            if passed.any:
                return passed, evaluated
            found, evaluated = sought(anywhere=True)
        return (await self._passed(found) if found.any else found), evaluated

    async def _passed(self, found: Feasibility) -> Feasibility:
        """*found* after the extenders' filters, one after another. Source: F026, F027."""
        self._given = {}
        for extender in self._extenders:
            if not extender.config.filter_verb:
                continue
            if not found.feasible.any():
                break
            try:
                answer = await extender.filter(self._question(found.feasible))
            except ExtenderError as wrong:
                if skipped(extender, wrong):
                    continue
                return replace(found, error=Status(Code.ERROR, (str(wrong),)))
            if answer.nodes is not None:
                self._given = dict(answer.nodes)
            found = heeded(found, answer, self._cluster)
        return found

    def _question(self, among: BoolArray) -> Question:
        rows = np.flatnonzero(among).tolist()
        names, nodes, given = self._cluster.names, self._cluster.nodes, self._given

        def texts() -> list[msgspec.Raw]:
            write = self._desk.texts.of
            return [given[names[row]].text if names[row] in given else write(nodes[row]) for row in rows]

        return Question(self._query.pod, [names[row] for row in rows], texts)

    # -- scoring

    async def _ranked(self, found: Feasibility) -> Ranking:
        """The scores of plugins and, if these did not fail, of extenders. Source: F035, F036."""
        try:
            cluster, engine = self._shown(found.feasible)
        except ValueError as wrong:
            none = np.empty(0, dtype=np.int64)
            return Ranking(none, none, error=Status(Code.ERROR, (f"a node that an extender gave back: {wrong}",)))
        ranking = rank(self._query, cluster, self._profile, engine, found.feasible, found.before)
        asked = [extender for extender in self._extenders if extender.config.prioritize_verb]
        if ranking.error is not None or not asked:
            return ranking
        question = self._question(found.feasible)
        answers = await asyncio.gather(*(_scores(extender, question) for extender in asked))
        totals = ranking.totals.copy()
        place_of = {name: place for place, name in enumerate(question.names)}
        for extender, scores in zip(asked, answers, strict=True):
            known = [each for each in scores if each.host in place_of]
            places = np.array([place_of[each.host] for each in known], dtype=np.int64)
            given = np.array([each.score for each in known], dtype=np.int64)
            np.add.at(totals, places, _weighted(given, extender.config.weight))
        return replace(ranking, totals=totals, leaders=None)

    def _shown(self, among: BoolArray) -> tuple[Snapshot, Engine]:
        """The cluster as scoring sees it: nodes that an extender gave back as it gave them, without pods and images.

        So it is in kube-scheduler, which knows nothing else of them. Source: F028.

        Raises:
            ValueError: such a node holds a quantity that cannot be read.
        """
        if not self._given:
            return self._cluster, self._engine
        cluster = self._cluster
        imagined = Hypothesis(cluster)
        pods: list[PlacedPod] = []
        rows: list[int] = []
        for row in np.flatnonzero(among).tolist():
            node = self._given[cluster.names[row]].node
            status = msgspec.structs.replace(node.status, images=())
            imagined.put_node(msgspec.structs.replace(node, status=status))
            there = cluster.pods_on(cluster.names[row]).values()
            pods.extend(there)
            rows.extend([row] * len(there))
        batch = PodBatch(pods, np.array(rows, dtype=np.int64))
        imagined.take_away(batch, np.arange(len(batch)))
        return imagined.snapshot(), Engine(self._engine.run, ColumnCache(enabled=False))

    # -- no node

    async def _nowhere(self, found: Feasibility) -> Unplaced:
        without_asking = hopeless(found, self._profile)
        if without_asking is not None:
            return without_asking
        began = self._engine.run.begin()
        rescue = await self._rescue(Attempt(found, self._profile, self._engine, self._desk.chance))
        self._engine.run.passed(self._profile.scheduler_name, "PostFilter", rescue.status, began)
        return unplaced(found, rescue)

    async def _rescue(self, attempt: Attempt) -> Rescue:
        """As `decide.rescue.rescue`, with victims put before the extenders."""
        answers = Answers()
        for plugin in self._profile.post_filters:
            answer = ask(plugin, self._query, self._cluster, attempt)
            if isinstance(answer.detail, PreemptionPlan):
                answer = await negotiated(
                    answer, answer.detail, self._query.pod, self._cluster, self._extenders, self._desk.chance
                )
            decided = answers.add(plugin.name, answer)
            if decided is not None:
                return decided
        return answers.end()

    # -- the world went on

    def _still(self, decision: Placed, found: Feasibility) -> Decision:
        """*decision* if its node takes the pod now as well, else the best of the nodes that do."""
        newest = self._desk.state.snapshot()
        if newest is self._cluster:
            return decision
        again = feasible(self._query, newest, self._profile, self._engine)
        if again.error is not None:
            return Unplaced(again.error, again.message(), again, nominated="")

        def takes_it(name: str) -> bool:
            row = newest.row(name)
            return row is not None and bool(again.feasible[row])

        notes = again.before.notes
        if takes_it(decision.node):
            return replace(decision, notes=notes)
        names, ranking = self._cluster.names, decision.ranking
        if ranking is not None:
            for place in np.argsort(-ranking.totals, kind="stable").tolist():
                name = names[int(ranking.rows[place])]
                if takes_it(name):
                    return replace(decision, node=name, notes=notes)
        return Unplaced(Status(Code.ERROR, (_OVERTAKEN,)), _OVERTAKEN, found, nominated="")


async def _scores(extender: HttpExtender, question: Question) -> list[HostPriority]:
    """Its scores; none if it failed, whether it may or not. Source: F037."""
    try:
        return await extender.prioritize(question)
    except ExtenderError as wrong:
        told = {"extender": extender.name, "err": str(wrong)}
        log.debug("Failed to run extender's priority function. No score given by this extender.", extra=told)
        return []


def _weighted(scores: IntArray, weight: int) -> IntArray:
    """What *scores* (int64) add to the totals; beyond 64 bits they wrap as in Go."""
    return scores * np.int64(weight) * np.int64(_SCALE)


def heeded(found: Feasibility, answer: Passed, cluster: Snapshot) -> Feasibility:
    """*found* less the nodes that an extender did not let pass, with what it has against them.

    What it says about a node replaces what was said before. About a node that it leaves out without a word nothing is
    known, which counts as refused for good. Names of nodes that are not in the cluster are passed over. Source: F030,
    F031, F033.
    """
    left = np.zeros(found.size, dtype=np.bool_)
    left[cluster.rows(list(answer.names))] = True
    said: dict[Reason, list[int]] = {}
    for code, texts in ((Code.UNRESOLVABLE, answer.unresolvable), (Code.UNSCHEDULABLE, answer.failed)):
        for name, text in texts.items():
            row = cluster.row(name)
            if row is not None and (code is Code.UNRESOLVABLE or name not in answer.unresolvable):
                said.setdefault(Reason(text, code), []).append(row)
    mentioned = np.zeros(found.size, dtype=np.bool_)
    new: list[Refusal] = []
    for reason, rows in said.items():
        nodes = np.zeros(found.size, dtype=np.bool_)
        nodes[rows] = True
        mentioned |= nodes
        new.append(Refusal(EXTENDER, reason, nodes))
    kept = [replace(refusal, nodes=refusal.nodes & ~mentioned) for refusal in found.refusals]
    refusals = (*(refusal for refusal in kept if refusal.nodes.any()), *new)
    fewer = int(left.sum()) != found.count
    others = found.others | {EXTENDER} if fewer else found.others
    return replace(found, feasible=left, refusals=refusals, others=others)
