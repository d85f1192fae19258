"""The nodes' part, played: bound pods start, pods of Jobs finish, deleted pods go, new nodes say that they are ready.

Time comes from the API's clock; nothing here waits. Whoever drives it calls `step` when something happened or the time
it named has come.
"""

from dataclasses import dataclass, field
from typing import Final

from extender.objects.times import stamp
from extender.sandbox.api import Api
from extender.sandbox.pod_rules import FINISHED, with_condition
from extender.sandbox.refusals import RefusedError
from extender.sandbox.served import NODES, PODS, Object, Served

RUNS_FOR: Final = "sandbox/runs-for-seconds"
"""The annotation that says after how many seconds of running a pod is done."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds.

    Attributes:
        start: from bound to running.
        job: from running to finished, for the pods of Jobs without an annotation of their own.
        stop: from the request to end until a pod is gone; never longer than its grace period.
    """

    start: float = 0.0
    job: float = 5.0
    stop: float = 0.0


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a pod waits for: its UID, what, and when that is due."""

    uid: str
    what: str
    due: float


@dataclass(slots=True)
class Nodes:
    """Plays the nodes of one API.

    Attributes:
        api: whose pods and nodes.
        pace: how long things take.
    """

    api: Api
    pace: Pace = field(default_factory=Pace)
    _turns: dict[tuple[str, str], _Turn] = field(default_factory=dict)
    _seen: int = 0

    def step(self) -> float | None:
        """Do all that is due: seconds until something else is, or None if nothing is until something happens."""
        now = self.api.clock.now()
        while True:
            self._look(now)
            due = [key for key, turn in self._turns.items() if turn.due <= now]
            if not due:
                break
            for namespace, name in due:
                self._do(namespace, name, self._turns.pop((namespace, name)).what)
        return min((turn.due - now for turn in self._turns.values()), default=None)

    def _look(self, now: float) -> None:
        """Notice what happened to pods and nodes since the last look."""
        store = self.api.store
        nodes, pods = self._changed(NODES), self._changed(PODS)
        self._seen = store.version
        for _, name in nodes:
            node = store.get(NODES.place, "", name)
            if node is not None:
                self._report(node)
        for namespace, name in pods:
            pod = store.get(PODS.place, namespace, name)
            self._plan(namespace, name, pod, now)

    def _changed(self, kind: Served) -> list[tuple[str, str]]:
        store = self.api.store
        try:
            found = [change.kept.object for change in store.changes(kind.place, self._seen)] if self._seen else None
        except RefusedError:
            found = None
        things = self.api.each(kind) if found is None else found
        return list(dict.fromkeys((it["metadata"].get("namespace", ""), it["metadata"]["name"]) for it in things))

    def _plan(self, namespace: str, name: str, pod: Object | None, now: float) -> None:
        before = self._turns.pop((namespace, name), None)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        what, seconds = self._next(pod)
        uid = pod["metadata"]["uid"]
        if what and before is not None and (before.uid, before.what) == (uid, what):
            self._turns[namespace, name] = before
        elif what:
            self._turns[namespace, name] = _Turn(uid, what, now + seconds)

    def _next(self, pod: Object) -> tuple[str, float]:
        """What a pod on a node waits for, and for how long; empty: for nothing."""
        meta, phase = pod["metadata"], pod["status"].get("phase")
        if meta.get("deletionTimestamp"):
            grace = float(meta.get("deletionGracePeriodSeconds") or 0)
            # With none left it was told to end already, and only finalizers hold it back.
            return ("stop", min(self.pace.stop, grace)) if grace else ("", 0.0)
        if phase == "Pending":
            return "start", self.pace.start
        if phase == "Running":
            annotation = (meta.get("annotations") or {}).get(RUNS_FOR)
            if annotation is not None:
                return "finish", float(annotation)
            if any(owner.get("kind") == "Job" for owner in meta.get("ownerReferences") or ()):
                return "finish", self.pace.job
        return "", 0.0

    def _do(self, namespace: str, name: str, what: str) -> None:
        match what:
            case "start":
                self.api.change(PODS, namespace, name, self._running)
            case "finish":
                self.api.change(PODS, namespace, name, self._finished)
            case _:
                self.api.remove(PODS, namespace, name)

    def _running(self, pod: Object) -> Object:
        now = stamp(self.api.clock.now())
        status = {**pod["status"], "phase": "Running", "startTime": now, "containerStatuses": _containers(pod, now)}
        running = {**pod, "status": status}
        for condition in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
            running = with_condition(running, {"type": condition, "status": "True"}, now)
        return running

    def _finished(self, pod: Object) -> Object:
        now = stamp(self.api.clock.now())
        ended = {"exitCode": 0, "reason": "Completed", "finishedAt": now}
        containers = [
            {**each, "ready": False, "started": False, "state": {"terminated": ended}}
            for each in pod["status"].get("containerStatuses") or ()
        ]
        status = {**pod["status"], "phase": FINISHED[0], "containerStatuses": containers}
        finished = {**pod, "status": status}
        for condition in ("ContainersReady", "Ready"):
            done = {"type": condition, "status": "False", "reason": "PodCompleted"}
            finished = with_condition(finished, done, now)
        return finished

    def _report(self, node: Object) -> None:
        """Say that a node is ready, if nobody said anything about that."""
        status = node.get("status") or {}
        conditions = status.get("conditions") or []
        if any(condition["type"] == "Ready" for condition in conditions):
            return
        now = stamp(self.api.clock.now())
        told: Object = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        ready = {**told, "message": "kubelet is posting ready status", "lastTransitionTime": now}
        reported = {**status, "conditions": [*conditions, {**ready, "lastHeartbeatTime": now}]}
        self.api.change(NODES, "", node["metadata"]["name"], lambda node: {**node, "status": reported})


def _containers(pod: Object, now: str) -> list[Object]:
    return [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for each in pod["spec"]["containers"]
    ]
