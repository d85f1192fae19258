"""The loop's hands and voice: its writes and events, put into the client's words."""

from dataclasses import dataclass

from extender.client.errors import ConflictError, NotFoundError
from extender.client.events import Event, reference
from extender.client.recorder import Recorder
from extender.client.transport import MERGE_PATCH
from extender.client.writes import Bound, Writer
from extender.framework.points import Write
from extender.loop.outside import Leadership
from extender.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Carries out what plugins and the loop want written (a `loop.outside.Api`).

    Attributes:
        writer: over the session that bindings use.
        leadership: asked immediately before a binding or a deletion is sent, also after waiting for our own rate.
    """

    writer: Writer
    leadership: Leadership

    async def carry_out(self, write: Write) -> None:
        """Make one call.

        Raises:
            ApiError: it did not succeed; NotFoundError also if another pod has the name by now, ConflictError also
                if the pod is on another node.
        """
        may_act = self.leadership.may_act
        match write.verb:
            case "bind":
                await self._bind(write)
            case "create":
                await self.writer.create(write.kind, write.namespace, write.body, subresource=write.subresource)
            case "update":
                await self.writer.update(
                    write.kind, write.namespace, write.name, write.body, subresource=write.subresource
                )
            case "patch" if write.kind == "Pod" and write.subresource == "status":
                await self.writer.patch("Pod", write.namespace, write.name, write.body, subresource="status")
            case "patch":
                await self.writer.patch(
                    write.kind,
                    write.namespace,
                    write.name,
                    write.body,
                    subresource=write.subresource,
                    content_type=MERGE_PATCH,
                )
            case "delete":
                uid = write.body.get("preconditions", {}).get("uid", "")
                await self.writer.delete(write.kind, write.namespace, write.name, uid=uid, allowed=may_act)
            case verb:
                raise ValueError(f"a plugin asks for the unknown verb {verb!r}")

    async def _bind(self, write: Write) -> None:
        node = write.body["target"]["name"]
        uid = write.body["metadata"]["uid"]
        bound = await self.writer.bind(
            write.namespace, write.name, uid, node, body=write.body, may_act=self.leadership.may_act
        )
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
        self, pod: Pod, *, warning: bool, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        """Source: H053 to H056."""
        speaker = related if related is not None else pod
        recorder = self.recorders.get(speaker.spec.scheduler_name) or next(iter(self.recorders.values()))
        about = None if related is None else reference(related, "v1", "Pod")
        kind = "Warning" if warning else "Normal"
        recorder.record(Event(reference(pod, "v1", "Pod"), kind, reason, action, note, about))
