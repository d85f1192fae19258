"""Carry out a plan of moves in a live cluster. Each step is proven again immediately before it, with all later steps.

The first surprise ends the execution: a step that the cluster no longer allows, an eviction that is refused, or a pod
that goes elsewhere. Nodes that were cordoned for unfinished steps are then uncordoned.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.analysis.input.input_errors import UnreadableError
from extender.analysis.recorded_cluster import Recording
from extender.analysis.required_kinds import RECORDED_KINDS
from extender.api.codec import decode
from extender.api.kinds.pod import Pod
from extender.app.cluster_reader import ClusterReader, open_transport
from extender.client.errors import ApiError, NotFoundError, TooManyRequestsError
from extender.client.kubeconfig import CredentialSource
from extender.client.listwatch import ListWatch, list_all
from extender.client.rest_mapping import ENDPOINTS
from extender.client.transport import STRATEGIC_MERGE_PATCH, Request, Transport
from extender.planning.rebalance.plan import Action, Change, Proof, Step, make_eviction

_POLL_SECONDS: Final = 0.5
_POD: Final = ENDPOINTS["Pod"]

ProveFunction = Callable[[Recording, Sequence[Change]], Proof]
"""A function that proves changes on a recorded cluster."""


class SurpriseError(Exception):
    """The exception for a step that does not have the outcome that was proven."""


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The options of the execution of a plan.

    Attributes:
        prove: proves the steps that are left, on the cluster as it is now.
        report: called with one line before each step.
        timeout: the seconds to wait for a budget, and for new pods.
        poll_seconds: the seconds between two reads while waiting.
    """

    prove: ProveFunction
    report: Callable[[str], None]
    timeout: float
    poll_seconds: float = _POLL_SECONDS


class PlanExecutor:
    """Carries out one plan.

    Args:
        server: the address of the API server, for messages.
    """

    def __init__(self, transport: Transport, server: str, options: ExecutionOptions) -> None:
        self._transport, self._server, self._options = transport, server, options
        self._cordoned: dict[str, None] = {}

    async def run(self, changes: Sequence[Change]) -> None:
        """Make all changes, one after another.

        Raises:
            SurpriseError: a step does not have the proven outcome; no later step is made.
            ApiError: the API server refuses a request.
        """
        remaining = list(changes)
        try:
            while remaining:
                number = len(changes) - len(remaining) + 1
                label = f"step {number} of {len(changes)}, {remaining[0].action.value} {remaining[0].name}"
                await self._make_first(remaining, label)
                del remaining[0]
        finally:
            await self._uncordon_unfinished(remaining)

    async def _make_first(self, remaining: Sequence[Change], label: str) -> None:
        """Prove the remaining changes, and make the first one."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout
        is_reported = False
        while True:
            recording = await ClusterReader(self._transport).read_kinds(RECORDED_KINDS, self._server)
            proof = self._options.prove(recording, remaining)
            if proof.failure is not None:
                raise SurpriseError(f"stopped before {label}: the plan is not possible any more: {proof.failure}")
            if not is_reported:
                self._options.report(label)
                is_reported = True
            pods = {obj.key: obj for obj in recording.objects if isinstance(obj, Pod)}
            try:
                await self._make(proof.steps[0], pods)
            except TooManyRequestsError as error:
                if loop.time() >= deadline:
                    raise SurpriseError(f"stopped at {label}: {error}") from error
                await asyncio.sleep(self._options.poll_seconds)
            else:
                return

    async def _make(self, step: Step, pods: dict[str, Pod]) -> None:
        change = step.change
        if change.action is not Action.EVICT:
            await self._set_unschedulable(change.name, value=change.action is Action.CORDON)
        else:
            await self._evict(step, pods)
        waiting = {placement.pod: pods[placement.pod].metadata.uid for placement in step.placed}
        await self._wait_for(lambda: self._find_unplaced(waiting))

    async def _set_unschedulable(self, node: str, *, value: bool) -> None:
        body = msgspec.json.encode({"spec": {"unschedulable": True if value else None}})
        path = ENDPOINTS["Node"].build_path(name=node)
        if value:
            self._cordoned[node] = None  # before the call, because its response may be lost
        await self._transport.call(Request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH))
        if not value:
            self._cordoned.pop(node, None)

    async def _evict(self, step: Step, pods: dict[str, Pod]) -> None:
        """Evict a pod, and wait until it is gone and its controller's new pod has a node."""
        pod = pods[step.change.name]
        namespace, name = pod.metadata.namespace, pod.metadata.name
        known_uids = {other.metadata.uid for other in pods.values()}
        body = msgspec.json.encode(make_eviction(namespace, name, pod.metadata.uid))
        await self._transport.call(Request("POST", _POD.build_path(namespace, name, "eviction"), body=body))
        node = ""

        async def find_unfinished() -> str:
            nonlocal node
            if await self._exists(pod):
                return f"pod {pod.key} still terminates"
            replacement = await self._find_replacement(pod, known_uids)
            node = replacement.spec.node_name if replacement is not None else ""
            return "" if node else f"the pod that replaces {pod.key} has no node"

        await self._wait_for(find_unfinished)
        if node not in step.equal_targets:
            raise SurpriseError(
                f"stopped after evict {pod.key}: the new pod went to {node}, not to {' or '.join(step.equal_targets)}"
            )

    async def _wait_for(self, find_problem: Callable[[], Awaitable[str]]) -> None:
        """Wait until *find_problem* finds no problem any more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout
        while True:
            problem = await find_problem()
            if not problem:
                return
            if loop.time() >= deadline:
                raise SurpriseError(f"stopped: after {self._options.timeout:g} s {problem}")
            await asyncio.sleep(self._options.poll_seconds)

    async def _exists(self, pod: Pod) -> bool:
        current = await self._get_pod(pod.key)
        return current is not None and current.metadata.uid == pod.metadata.uid

    async def _get_pod(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        try:
            return decode(await self._transport.call(Request("GET", _POD.build_path(namespace, name))), Pod)
        except NotFoundError:
            return None

    async def _find_replacement(self, pod: Pod, known_uids: set[str]) -> Pod | None:
        """Return a pod of the same controller that did not exist before the eviction; one with a node if possible."""
        controller = pod.metadata.controller
        pods = await list_all(self._transport, ListWatch(Pod, _POD, pod.metadata.namespace))
        new_pods = [
            other
            for other in pods.items.values()
            if other.metadata.uid not in known_uids
            and (owner := other.metadata.controller) is not None
            and controller is not None
            and owner.uid == controller.uid
        ]
        return next((other for other in new_pods if other.spec.node_name), new_pods[0] if new_pods else None)

    async def _find_unplaced(self, uids: dict[str, str]) -> str:
        """Return a sentence about the first of these pods that still has no node; empty if there is none."""
        for key, uid in uids.items():
            pod = await self._get_pod(key)
            if pod is not None and pod.metadata.uid == uid and not pod.spec.node_name:
                return f"pod {key} still waits"
        return ""

    async def _uncordon_unfinished(self, remaining: Sequence[Change]) -> None:
        """Uncordon the nodes that were cordoned for changes that were not made. A failure is only reported."""
        for node in list(self._cordoned) if remaining else ():
            try:
                await self._set_unschedulable(node, value=False)
            except ApiError as error:
                self._options.report(f"node {node} stays cordoned: {error}; run: kubectl uncordon {node}")
            else:
                self._options.report(f"uncordon {node}, because the plan is not finished")


def execute_plan(source: CredentialSource, changes: Sequence[Change], options: ExecutionOptions) -> None:
    """Connect to a cluster and carry out a plan there.

    Raises:
        SurpriseError: a step does not have the proven outcome.
        UnreadableError: the API server refuses a request or cannot be reached.
    """
    server = "the cluster"

    async def connect_and_run() -> None:
        nonlocal server
        async with open_transport(source) as (transport, server):
            await PlanExecutor(transport, server, options).run(changes)

    try:
        asyncio.run(connect_and_run())
    except ApiError as error:
        raise UnreadableError(server, f"{error}; --apply patches nodes and creates pods/eviction") from error
