"""Writes to the API server: API calls of plugins and the scheduler, and events."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.api.kinds.pod import Pod
from extender.api.kinds.pod_group import PodGroup
from extender.client.errors import ConflictError, NotFoundError
from extender.client.event_recorder import EventBroadcaster
from extender.client.events import Event, make_object_reference
from extender.client.transport import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from extender.client.writer import BindOutcome, Writer
from extender.framework.api_plan import ApiCall
from extender.scheduler.binder import ignore
from extender.scheduler.leadership import Leadership

_STRATEGIC_MERGE_KINDS: Final = ("Pod", "PodGroup")
"""Kinds whose status gets a strategic merge patch, which keeps the conditions of other writers."""

_API_VERSIONS: Final = {Pod: "v1", PodGroup: "scheduling.k8s.io/v1alpha2"}


@dataclass(slots=True)
class ApiWriter:
    """Makes API calls (implements `binder.ApiCaller`).

    Attributes:
        writer: the client's writer, which uses the connection for bindings.
        leadership: the leadership, checked just before each call is sent, after any wait for the rate limit.
        in_flight: the number of calls in progress.
    """

    writer: Writer
    leadership: Leadership
    in_flight: int = 0

    async def call(self, api_call: ApiCall, check_before_send: Callable[[], None] = ignore, /) -> None:
        """Make one API call. *check_before_send* runs just before the call is sent and may raise to stop it.

        Raises:
            ApiError: the call failed. NotFoundError also if a new pod has the name; ConflictError also if the pod is on
                another node.
        """

        def may_act() -> bool:
            check_before_send()
            return self.leadership.may_act()

        self.in_flight += 1
        try:
            await self._send(api_call, may_act)
        finally:
            self.in_flight -= 1

    async def _send(self, api_call: ApiCall, may_act: Callable[[], bool]) -> None:
        writer = self.writer
        kind, namespace, name, body = api_call.kind, api_call.namespace, api_call.name, api_call.body
        subresource = api_call.subresource
        match api_call.verb:
            case "bind":
                await self._bind(api_call, may_act)
            case "create":
                await writer.create(kind, namespace, body, subresource=subresource, is_allowed=may_act)
            case "update":
                await writer.update(kind, namespace, name, body, subresource=subresource, is_allowed=may_act)
            case "patch":
                is_strategic = api_call.strategic or (kind in _STRATEGIC_MERGE_KINDS and subresource == "status")
                content_type = STRATEGIC_MERGE_PATCH if is_strategic else MERGE_PATCH
                await writer.patch(
                    kind,
                    namespace,
                    name,
                    body,
                    subresource=subresource,
                    content_type=content_type,
                    is_allowed=may_act,
                )
            case "delete":
                uid = body.get("preconditions", {}).get("uid", "")
                await writer.delete(kind, namespace, name, uid=uid, is_allowed=may_act)
            case verb:
                raise ValueError(f"unknown verb {verb!r} in an API call of a plugin")

    async def _bind(self, api_call: ApiCall, may_act: Callable[[], bool]) -> None:
        node = api_call.body["target"]["name"]
        uid = api_call.body["metadata"]["uid"]
        namespace, name = api_call.namespace, api_call.name
        result = await self.writer.bind(namespace, name, uid, node, body=api_call.body, is_allowed=may_act)
        pod = f"{namespace}/{name}"
        match result:
            case BindOutcome.BOUND:
                return
            case BindOutcome.ON_OTHER_NODE:
                raise ConflictError(f"pod {pod} is on another node already")
            case BindOutcome.POD_REPLACED:
                raise NotFoundError(f"pod {pod} was deleted and recreated")
            case BindOutcome.POD_GONE:
                raise NotFoundError(f"pod {pod} does not exist any more")


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Records events under the name of the pod's scheduler.

    Attributes:
        recorders: the event broadcasters by scheduler name.
    """

    recorders: dict[str, EventBroadcaster]

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
        """Record an event about *pod*. *scheduler* overrides the pod's scheduler name. Never blocks and never raises.

        Source: pkg/scheduler/schedule_one.go, Scheduler.finishBinding;
        pkg/scheduler/framework/preemption/executor.go, NewExecutor;
        pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, DynamicResources.PreBind (1.36).
        """
        name = scheduler or pod.spec.scheduler_name
        recorder = self.recorders.get(name) or next(iter(self.recorders.values()))
        related_reference = None
        if related is not None:
            related_kind = type(related)
            related_reference = make_object_reference(related, _API_VERSIONS[related_kind], related_kind.__name__)
        event_type = "Warning" if warning else "Normal"
        recorder.record(
            Event(make_object_reference(pod, "v1", "Pod"), event_type, reason, action, note, related_reference)
        )
