"""The loop's hands and voice: its writes and events, put into the client's words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.carrying import nobody
from extender.client.errors import ConflictError, NotFoundError
from extender.client.events import Event, reference
from extender.client.recorder import Recorder
from extender.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.writes import Bound, Writer
from extender.framework.points import Write
from extender.loop.outside import Leadership
from extender.objects.groups import PodGroup
from extender.objects.pod import Pod

_STRATEGIC: Final = ("Pod", "PodGroup")
"""Kinds whose status is patched entry by entry: conditions by their type, those of others stay."""

_VERSIONS: Final = {Pod: "v1", PodGroup: "scheduling.k8s.io/v1alpha2"}


@dataclass(slots=True)
class ApiServer:
    """Carries out what plugins and the loop want written (a `carrying.Api`).

    Attributes:
        writer: over the session that bindings use.
        leadership: asked immediately before anything is sent, also after waiting for our own rate.
        under_way: how many calls have begun and not ended.
    """

    writer: Writer
    leadership: Leadership
    under_way: int = 0

    async def carry_out(self, write: Write, ask: Callable[[], None] = nobody, /) -> None:
        """Make one call; *ask* is called immediately before it is sent, after any wait, and may raise to end it.

        Raises:
            ApiError: it did not succeed; NotFoundError also if another pod has the name by now, ConflictError also
                if the pod is on another node.
        """

        def may_act() -> bool:
            ask()
            return self.leadership.may_act()

        self.under_way += 1
        try:
            await self._carry_out(write, may_act)
        finally:
            self.under_way -= 1

    async def _carry_out(self, write: Write, may_act: Callable[[], bool]) -> None:
        writer = self.writer
        kind, namespace, name, body, part = write.kind, write.namespace, write.name, write.body, write.subresource
        match write.verb:
            case "bind":
                await self._bind(write, may_act)
            case "create":
                await writer.create(kind, namespace, body, subresource=part, allowed=may_act)
            case "update":
                await writer.update(kind, namespace, name, body, subresource=part, allowed=may_act)
            case "patch":
                by_entry = write.strategic or (kind in _STRATEGIC and part == "status")
                merging = STRATEGIC_MERGE_PATCH if by_entry else MERGE_PATCH
                await writer.patch(kind, namespace, name, body, subresource=part, content_type=merging, allowed=may_act)
            case "delete":
                uid = body.get("preconditions", {}).get("uid", "")
                await writer.delete(kind, namespace, name, uid=uid, allowed=may_act)
            case verb:
                raise ValueError(f"a plugin asks for the unknown verb {verb!r}")

    async def _bind(self, write: Write, may_act: Callable[[], bool]) -> None:
        node = write.body["target"]["name"]
        uid = write.body["metadata"]["uid"]
        bound = await self.writer.bind(write.namespace, write.name, uid, node, body=write.body, may_act=may_act)
        pod = f"{write.namespace}/{write.name}"
        match bound:
            case Bound.HERE:
                return
            case Bound.ELSEWHERE:
                raise ConflictError(f"pod {pod} is on another node already")
            case Bound.REPLACED:
                raise NotFoundError(f"pod {pod} was deleted and made again")
            case Bound.GONE:
                raise NotFoundError(f"pod {pod} is gone")


@dataclass(frozen=True, slots=True)
class Voice:
    """Tells users what happened (a `loop.outside.Recorder`), in the name of the pod's scheduler.

    Attributes:
        recorders: by scheduler name.
    """

    recorders: dict[str, Recorder]

    def event(
        self,
        pod: Pod,
        *,
        warning: bool,
        reason: str,
        action: str,
        note: str,
        related: Pod | PodGroup | None = None,
        scheduler: str = "",
    ) -> None:
        """Source: H053 to H056."""
        name = scheduler or pod.spec.scheduler_name
        recorder = self.recorders.get(name) or next(iter(self.recorders.values()))
        about = None if related is None else reference(related, _VERSIONS[type(related)], type(related).__name__)
        kind = "Warning" if warning else "Normal"
        recorder.record(Event(reference(pod, "v1", "Pod"), kind, reason, action, note, about))
