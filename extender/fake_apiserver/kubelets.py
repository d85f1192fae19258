"""Simulate kubelets, which start bound pods, finish pods of Jobs, remove deleted pods, and report new nodes as Ready.

The kubelets use the clock of the API and never wait. The caller runs `Kubelets.step` after each change of a pod or
node, and again after the number of seconds that `step` returns.
"""

from dataclasses import dataclass, field
from typing import Final

from extender.api.timestamps import format_time
from extender.fake_apiserver.registry.api import Api
from extender.fake_apiserver.registry.api_errors import StatusError
from extender.fake_apiserver.registry.pod_strategy import TERMINAL_PHASES, set_condition
from extender.fake_apiserver.registry.resources import NODES, PODS, ApiResource, Object

RUN_SECONDS_ANNOTATION: Final = "fake-apiserver/run-seconds"
"""The pod annotation with the number of seconds for which a pod runs before it succeeds."""


@dataclass(frozen=True, slots=True)
class KubeletTiming:
    """The durations of the kubelets' actions.

    Attributes:
        start_seconds: the time from the binding of a pod until it runs.
        job_seconds: the time for which a pod of a Job runs, unless the pod has the annotation `RUN_SECONDS_ANNOTATION`.
        stop_seconds: the time from the deletion of a pod until its removal, limited by the pod's grace period.
    """

    start_seconds: float = 0.0
    job_seconds: float = 5.0
    stop_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _PendingAction:
    """The next action of the pod with UID `uid`.

    Attributes:
        action: `start`, `finish` or `stop`.
        due_time: the time of the action in seconds since 1970.
    """

    uid: str
    action: str
    due_time: float


@dataclass(slots=True)
class Kubelets:
    """The kubelets of all nodes of one API."""

    api: Api
    timing: KubeletTiming = field(default_factory=KubeletTiming)
    _pending_actions: dict[tuple[str, str], _PendingAction] = field(default_factory=dict)
    _observed_version: int = 0

    def step(self) -> float | None:
        """Run all due actions; return the seconds until the next action, or None if no action is pending."""
        now = self.api.clock.now()
        while True:
            self._observe_changes(now)
            due_keys = [key for key, action in self._pending_actions.items() if action.due_time <= now]
            if not due_keys:
                break
            for namespace, name in due_keys:
                match self._pending_actions.pop((namespace, name)).action:
                    case "start":
                        self.api.guaranteed_update(PODS, namespace, name, self._set_running)
                    case "finish":
                        self.api.guaranteed_update(PODS, namespace, name, self._set_succeeded)
                    case _:
                        self.api.delete_now(PODS, namespace, name)
        return min((action.due_time - now for action in self._pending_actions.values()), default=None)

    def _observe_changes(self, now: float) -> None:
        """Report changed nodes as Ready, and schedule the next actions of changed pods."""
        store = self.api.store
        nodes, pods = self._list_changed_keys(NODES), self._list_changed_keys(PODS)
        self._observed_version = store.resource_version
        for _, name in nodes:
            node = store.get(NODES.storage_key, "", name)
            if node is not None:
                self._report_ready(node)
        for namespace, name in pods:
            pod = store.get(PODS.storage_key, namespace, name)
            self._schedule_action(namespace, name, pod, now)

    def _list_changed_keys(self, resource: ApiResource) -> list[tuple[str, str]]:
        try:
            changes = self.api.store.list_changes_since(resource.storage_key, self._observed_version)
            objects = [change.stored_object.content for change in changes]
        except StatusError:  # the changes are no longer stored
            objects = self.api.list_objects(resource)
        keys = ((content["metadata"].get("namespace", ""), content["metadata"]["name"]) for content in objects)
        return list(dict.fromkeys(keys))

    def _schedule_action(self, namespace: str, name: str, pod: Object | None, now: float) -> None:
        previous_action = self._pending_actions.pop((namespace, name), None)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        action, seconds = self._choose_next_action(pod)
        uid = pod["metadata"]["uid"]
        if action and previous_action is not None and (previous_action.uid, previous_action.action) == (uid, action):
            self._pending_actions[namespace, name] = previous_action
        elif action:
            self._pending_actions[namespace, name] = _PendingAction(uid, action, now + seconds)

    def _choose_next_action(self, pod: Object) -> tuple[str, float]:
        """Return the next action of an assigned pod and its delay; an empty action if the pod needs none."""
        meta, phase = pod["metadata"], pod["status"].get("phase")
        if meta.get("deletionTimestamp"):
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
            # With a grace period of 0 the pod has stopped already, and only finalizers delay its removal.
            return ("stop", min(self.timing.stop_seconds, grace)) if grace else ("", 0.0)
        if phase == "Pending":
            return "start", self.timing.start_seconds
        if phase == "Running":
            annotation = (meta.get("annotations") or {}).get(RUN_SECONDS_ANNOTATION)
            if annotation is not None:
                return "finish", float(annotation)
            if any(owner.get("kind") == "Job" for owner in meta.get("ownerReferences") or ()):
                return "finish", self.timing.job_seconds
        return "", 0.0

    def _set_running(self, pod: Object) -> Object:
        now = format_time(self.api.clock.now())
        status = {
            **pod["status"],
            "phase": "Running",
            "startTime": now,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container.get("image", ""),
                    "imageID": "",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
                for container in pod["spec"]["containers"]
            ],
        }
        updated_pod = {**pod, "status": status}
        for condition_type in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            updated_pod = set_condition(updated_pod, {"type": condition_type, "status": "True"}, now)
        return updated_pod

    def _set_succeeded(self, pod: Object) -> Object:
        now = format_time(self.api.clock.now())
        terminated_state = {"exitCode": 0, "reason": "Completed", "finishedAt": now}
        container_statuses = [
            {**container_status, "ready": False, "started": False, "state": {"terminated": terminated_state}}
            for container_status in pod["status"].get("containerStatuses") or ()
        ]
        status = {**pod["status"], "phase": TERMINAL_PHASES[0], "containerStatuses": container_statuses}
        updated_pod = {**pod, "status": status}
        for condition_type in ("ContainersReady", "Ready"):
            condition = {"type": condition_type, "status": "False", "reason": "PodCompleted"}
            updated_pod = set_condition(updated_pod, condition, now)
        return updated_pod

    def _report_ready(self, node: Object) -> None:
        """Add a Ready condition to a node without one."""
        status = node.get("status") or {}
        conditions = status.get("conditions") or []
        if any(condition["type"] == "Ready" for condition in conditions):
            return
        now = format_time(self.api.clock.now())
        condition: Object = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        condition_fields = {**condition, "message": "kubelet is posting ready status", "lastTransitionTime": now}
        updated_status = {**status, "conditions": [*conditions, {**condition_fields, "lastHeartbeatTime": now}]}
        self.api.guaranteed_update(NODES, "", node["metadata"]["name"], lambda node: {**node, "status": updated_status})
