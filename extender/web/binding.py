"""The verb bind: puts a pod on a node for a scheduler, if everything it says still holds.

Nothing is believed that can be looked up. The pod is read from the API server first; its name, uid, scheduler and
state must be what the request implies. The node is then judged by the profile of the pod's scheduler, on the newest
state. Only then is the pod assumed on the node, what its volumes and claims need is written, and then the Binding, with
the pod's uid as precondition. Every failure takes the assumption back and is told in the answer. A pod that is on that
node already is a success, so asking twice is safe.
Source: F023, F041, F047.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from extender.basics.clock import Clock, SystemClock
from extender.carrying import Api, Carrier, RejectedError, take_back
from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide import committing
from extender.decide.admission import held_back
from extender.decide.engine import Engine
from extender.decide.feasible import feasible
from extender.decide.rechecking import node_now
from extender.framework.profiles import Profile
from extender.framework.verdict import Code, Status
from extender.objects.extender_v1 import BindingArgs, BindingResult
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.web.record import Record

log = logging.getLogger("extender.web")

_FINISHED = ("Succeeded", "Failed")


class LiveError(Exception):
    """The API server could not be asked, or said no; carries one line."""


class Live(Api, Protocol):
    """The API server, as far as bind needs it."""

    async def pod(self, namespace: str, name: str) -> Pod | None:
        """The pod of that name as it is now; None if there is none.

        Raises:
            LiveError: it cannot be read.
        """


class Outcomes(Protocol):
    """Hears how requests end (`observe.verbs.VerbMetrics`)."""

    def bound(self, outcome: str) -> None:
        """`bound`, `already` (it was there), `refused` (nothing was written), `failed` (writing did not succeed)."""


class Unheard:
    """Outcomes for nobody."""

    def bound(self, outcome: str) -> None:
        """Nothing."""


class RefusedError(Exception):
    """The pod is not bound; carries the reason."""


def _nothing(_: Pod) -> None:
    """For whoever need not know."""


def _well() -> str:
    return ""


@dataclass(slots=True)
class Binder:
    """Binds pods of one cluster. All calls are to come from one event loop.

    Attributes:
        state: the cluster as watched; bindings are assumed in it until the watch confirms them.
        profiles: by scheduler name; pods of these schedulers are bound.
        default: the profile for pods of `others`.
        engine: judges the node; the one the other verbs use.
        live: the API server.
        outcomes: hears how requests end.
        others: names of further schedulers whose pods are bound.
        wrong: why nothing can be decided now; empty if it can.
        record: remembers decisions.
        given_back: told of a pod that is not bound after all.
        clock: to wait by.
    """

    state: ClusterState
    profiles: Mapping[str, Profile]
    default: Profile
    engine: Engine
    live: Live
    outcomes: Outcomes = field(default_factory=Unheard)
    others: Collection[str] = ()
    wrong: Callable[[], str] = _well
    record: Record = field(default_factory=Record)
    given_back: Callable[[Pod], None] = _nothing
    clock: Clock = field(default_factory=SystemClock)
    _turns: dict[str, tuple[asyncio.Lock, int]] = field(default_factory=dict)

    async def bind(self, args: BindingArgs) -> BindingResult:
        """Put the pod on the node, or say in `error` why not; then nothing has changed."""
        if wrong := self.wrong():
            return self._told(args, "refused", wrong)
        given = {
            "PodName": args.pod_name,
            "PodNamespace": args.pod_namespace,
            "PodUID": args.pod_uid,
            "Node": args.node,
        }
        for name, value in given.items():
            if not value:
                return self._told(args, "refused", f"{name}: is missing")
        try:
            async with self._turn(args.pod_uid):  # a repeated request finds out how the first one ended
                return self._told(args, await self._bound(args))
        except RefusedError as why:
            return self._told(args, "refused", str(why))
        except RejectedError as why:
            return self._told(args, "refused" if why.status.rejected else "failed", str(why))
        except LiveError as why:
            return self._told(args, "failed", str(why))

    @asynccontextmanager
    async def _turn(self, uid: str) -> AsyncIterator[None]:
        """One request about a pod at a time."""
        turn, users = self._turns.get(uid, (asyncio.Lock(), 0))
        self._turns[uid] = turn, users + 1
        try:
            async with turn:
                yield
        finally:
            _, users = self._turns[uid]
            if users == 1:
                del self._turns[uid]
            else:
                self._turns[uid] = turn, users - 1

    def _told(self, args: BindingArgs, outcome: str, error: str = "") -> BindingResult:
        self.outcomes.bound(outcome)
        told = {"node": args.node, "uid": args.pod_uid, "result": outcome, "error": error}
        self.record.note(args.key, "bind", lambda: told, sum(map(len, told.values())))
        return BindingResult(error)

    async def _bound(self, args: BindingArgs) -> str:
        pod = await self.live.pod(args.pod_namespace, args.pod_name)
        if _is_there(pod, args):
            return "already"
        checked = self._checked(pod, args)
        # From the check to the assumption nothing else runs, so no other request fills the node in between.
        query, notes = self._fits(checked, args.node)
        chosen = node_now(self.state, args.node)
        nominated = self._nominated(args.pod_uid)
        profile = self._profile(checked)
        self.state.assume(committing.assumed(checked, args.node, profile, notes), args.node)
        try:
            await self._committed(query, args.node, chosen, profile, notes)
        except BaseException:
            undone = committing.unreserve(query, args.node, profile, self.engine, notes)
            for wrong in undone.faults:
                log.warning("%s", wrong)
            await take_back(self.live, undone.writes, log.warning)
            if self.state.is_assumed(args.pod_uid):
                self.state.forget(checked)
                self.state.nominate(checked, nominated)
                self.given_back(checked)
            raise
        for wrong in committing.post_bind(query, args.node, profile, self.engine, notes):
            log.warning("%s", wrong)
        return "bound"

    async def _committed(
        self, pod: PodQuery, node: str, chosen: Node | None, profile: Profile, notes: dict[str, Any]
    ) -> None:
        """Reserve, ask Permit, prepare and bind to *node*, if it still takes the pod then. Source: A024 to A036.

        Raises:
            RejectedError: one of these did not come about.
        """
        engine, cluster = self.engine, self.state.snapshot()
        _insist(committing.reserve(pod, node, cluster, profile, engine, notes))
        _insist(committing.permit(pod, node, cluster, profile, engine, notes).status)
        del cluster
        prepared = committing.prepare(pod, node, profile, engine, notes)
        if prepared.status is not None and prepared.status.code is not Code.SKIP:
            raise RejectedError(prepared.status)

        def goes_on() -> None:
            if not self.state.is_assumed(pod.uid):
                raise RejectedError(Status(Code.ERROR, ("pod does not exist any more",)))

        carrier = Carrier(
            pod, node, chosen, profile, engine, notes, self.state, self.live, self.clock, asyncio.sleep, goes_on
        )
        if prepared.status is None:
            await carrier.prepare(prepared.groups)
        goes_on()
        await carrier.bind()

    def _profile(self, pod: Pod) -> Profile:
        return self.profiles.get(pod.spec.scheduler_name, self.default)

    def _nominated(self, uid: str) -> str:
        """The node that the pod is nominated for; empty if for none."""
        nominations = self.state.snapshot().nominations.items()
        return next((node for node, queries in nominations if any(query.uid == uid for query in queries)), "")

    def _checked(self, pod: Pod | None, args: BindingArgs) -> Pod:
        """The pod, if it is the one that was meant and waits for a node.

        Raises:
            RefusedError: it is not.
        """
        key = f"{args.pod_namespace}/{args.pod_name}"
        if pod is None:
            raise RefusedError(f"pod {key} not found")
        if (pod.metadata.namespace, pod.metadata.name) != (args.pod_namespace, args.pod_name):
            raise RefusedError(f"asked for pod {key}, the API server answered with {pod.key}")
        uid = pod.metadata.uid
        if uid != args.pod_uid:
            raise RefusedError(f"pod {key} has the uid {uid}, not {args.pod_uid}: it was deleted and made again")
        if pod.spec.scheduler_name not in self.profiles and pod.spec.scheduler_name not in self.others:
            raise RefusedError(f'pod {key} is for the scheduler "{pod.spec.scheduler_name}", which is not served here')
        if pod.spec.node_name:
            raise RefusedError(f"pod {key} is on node {pod.spec.node_name} already")
        if pod.metadata.deletion_timestamp is not None:
            raise RefusedError(f"pod {key} is being deleted")
        if pod.status.phase in _FINISHED:
            raise RefusedError(f"pod {key} has finished")
        known = self.state.placed.get(uid)
        if known is not None:
            raise RefusedError(
                f"pod {key} is known to be on node {known.node_name}; the API server does not say so yet"
            )
        return pod

    def _fits(self, pod: Pod, node: str) -> tuple[PodQuery, dict[str, Any]]:
        """Judge *node* by the profile of the pod's scheduler; the pod compiled, and the notes of PreFilter.

        Raises:
            RefusedError: it is not known, or does not take the pod.
        """
        cluster = self.state.snapshot()
        row = cluster.row(node)
        if row is None:
            raise RefusedError(f"node {node} is not known to the extender (yet)")
        query, profile = cluster.query(pod), self._profile(pod)
        held = held_back(query, cluster, profile, self.engine)
        if held is not None:
            raise RefusedError(f"pod {pod.key}: {held.message}")
        found = feasible(query, cluster, profile, self.engine, reasons=True)
        if found.error is not None:
            raise RefusedError(found.error.message)
        if found.before.status is not None:
            raise RefusedError(f"node {node} does not take pod {pod.key}: {found.before.status.message}")
        if not found.feasible[row]:
            said = [refusal.reason.text for refusal in found.refusals if refusal.nodes[row]]
            raise RefusedError(f"node {node} does not take pod {pod.key}: {', '.join(said) or found.before.absent}")
        return query, dict(found.before.notes)


def _insist(status: Status | None) -> None:
    """Raises `RejectedError` unless all is well; a plugin that wants to wait is asked again when the caller does."""
    if status is not None and not status.ok:
        raise RejectedError(status)


def _is_there(pod: Pod | None, args: BindingArgs) -> bool:
    return pod is not None and (pod.metadata.uid, pod.spec.node_name) == (args.pod_uid, args.node)
