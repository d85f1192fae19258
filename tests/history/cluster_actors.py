"""The threads that change the cluster: one carries out the operations, one replaces the kubelets and controllers."""

import json
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Final

from tests.controlplane.api_client import ApiClient, ApiStatusError, UnreachableError, object_key
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.resources import ALL_RESOURCES
from tests.history.cluster_state import ClusterState, Object, is_finished, is_terminating, node_name, uid_of
from tests.history.node_rules import HOST
from tests.history.observer import Observer
from tests.history.workload import Operation, make_volume, reference

_RETRY_SECONDS: Final = 90.0
_RETRY_INTERVAL: Final = 0.2
_MAX_BURST_SECONDS: Final = 1.0
_KUBELET_INTERVAL: Final = 0.1
_REPEAT_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 0.4
_STRATEGIC: Final = {"Content-Type": "application/strategic-merge-patch+json"}
_FINAL_STATUSES: Final = {404, 409}
"""Statuses of a request that cannot succeed later: the object does not exist, or it exists already."""


class ActorError(Exception):
    """A thread that changes the cluster failed."""


class _Actor:
    """A thread with its own client.

    Attributes:
        error: the exception that ended the thread.
    """

    def __init__(self, plane: ControlPlane, observer: Observer) -> None:
        self.error: Exception | None = None
        self._api = plane.client()
        self._observer = observer
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_safely, name=type(self).__name__, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._stopping.set()
        self._thread.join()
        self._api.close()

    def is_running(self) -> bool:
        """Return whether the thread runs.

        Raises:
            ActorError: it ended with an error.
        """
        if self.error is not None:
            raise ActorError(f"{type(self).__name__} failed") from self.error
        return self._thread.is_alive()

    def _run_safely(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.error = error

    def _run(self) -> None:
        raise NotImplementedError


def postpone(start: float, planned: float, now: float) -> float:
    """Return the start of the workload, moved so that no operation is late by more than `_MAX_BURST_SECONDS`.

    After an outage, the late operations follow at once. Without the bound, a slow start of the API server would let
    most pods be deleted right after their creation, before a scheduler could bind them.

    Args:
        start: the time at which the workload started (seconds).
        planned: the planned time of the operation that ended last (seconds since *start*).
        now: the time at which that operation ended (seconds).
    """
    return max(start, now - planned - _MAX_BURST_SECONDS)


class OperationRunner(_Actor):
    """Carries out the operations of a workload at their times; repeats a request while the API server is down.

    After a long outage, the remaining operations are postponed (`postpone`).
    """

    def __init__(self, plane: ControlPlane, observer: Observer, operations: Sequence[Operation]) -> None:
        self._operations = operations
        super().__init__(plane, observer)

    def _run(self) -> None:
        start = monotonic()
        for operation in self._operations:
            while (remaining := start + operation.time - monotonic()) > 0:
                if self._stopping.wait(remaining):
                    return
            send_repeatedly(partial(self._carry_out, operation), self._stopping)
            start = postpone(start, operation.time, monotonic())

    def _carry_out(self, operation: Operation) -> None:
        manifest = operation.manifest
        if operation.action == "create":
            self._api.create(manifest)
        elif operation.action == "delete":
            self._api.call("DELETE", ALL_RESOURCES[manifest["kind"]].object_path(manifest))
        elif operation.action == "finish":
            pod = self._observer.state().find("Pod", object_key(manifest))
            if pod is not None and pod.get("status", {}).get("phase") == "Running":
                self._api.patch(manifest, {"status": {"phase": "Succeeded"}}, "status")
        elif operation.action == "ungate":
            self._api.patch(manifest, {"spec": {"schedulingGates": []}})
        else:
            self._api.patch(manifest, operation.change, "status" if "status" in operation.change else "")


def send_repeatedly(send: Callable[[], None], stopping: threading.Event) -> None:
    """Send a request until it succeeds or cannot succeed.

    Raises:
        ApiStatusError: the request is wrong.
        UnreachableError: the API server was down for too long.
    """
    deadline = monotonic() + _RETRY_SECONDS
    while not stopping.wait(0):
        try:
            return send()
        except ApiStatusError as error:
            if error.status in _FINAL_STATUSES:
                return None
            if not _is_temporary(error) or monotonic() > deadline:
                raise
        except UnreachableError:
            if monotonic() > deadline:
                raise
        stopping.wait(_RETRY_INTERVAL)
    return None


def _is_temporary(error: ApiStatusError) -> bool:
    """Return whether the API server is overloaded or starts: its RBAC rules and quotas may not be loaded yet."""
    return error.status >= 500 or error.status in {401, 403, 429}


class KubeletActor(_Actor):
    """Replaces all kubelets: runs bound pods, ends terminating ones. Removes pods of deleted nodes and used volumes."""

    def __init__(self, plane: ControlPlane, observer: Observer) -> None:
        self._sent_at: dict[tuple[str, str], float] = {}
        self._terminating_since: dict[str, float] = {}
        super().__init__(plane, observer)

    def _run(self) -> None:
        while not self._stopping.wait(_KUBELET_INTERVAL):
            state = self._observer.state()
            for pod in state.pods.values():
                if node_name(pod):
                    self._sync_pod(pod, state)
            for volume in state.objects["PersistentVolume"].values():
                if volume.get("status", {}).get("phase") == "Released" and not is_terminating(volume):
                    self._send("replace", volume, self._replace_volume)

    def _sync_pod(self, pod: Object, state: ClusterState) -> None:
        now = monotonic()
        is_orphan = node_name(pod) not in state.nodes
        if is_terminating(pod) or is_orphan:
            if now - self._terminating_since.setdefault(uid_of(pod), now) > _GRACE_SECONDS:
                self._send("delete", pod, self._delete)
        elif pod.get("status", {}).get("phase") == "Pending" and not is_finished(pod):
            self._send("run", pod, self._run_pod)

    def _send(self, action: str, obj: Object, send: Callable[[Object], None]) -> None:
        """Send a request; ignore its failure and repeat it later if the state remains."""
        key = (action, uid_of(obj))
        if monotonic() - self._sent_at.get(key, -_REPEAT_SECONDS) >= _REPEAT_SECONDS:
            self._sent_at[key] = monotonic()
            try:
                send(obj)
            except (ApiStatusError, UnreachableError):
                return

    def _delete(self, pod: Object) -> None:
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        self._api.call("DELETE", ALL_RESOURCES["Pod"].object_path(pod), body)

    def _run_pod(self, pod: Object) -> None:
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        # The version prevents that a pod that finished meanwhile runs again.
        body = {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "status": status}
        self._api.call("PATCH", f"{ALL_RESOURCES['Pod'].object_path(pod)}/status", body, _STRATEGIC)

    def _replace_volume(self, volume: Object) -> None:
        """Delete a released volume and create an empty one, as an administrator does for a local disk."""
        self._api.call("DELETE", ALL_RESOURCES["PersistentVolume"].object_path(volume))
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        node = next(each["values"][0] for each in terms[0]["matchExpressions"] if each["key"] == HOST)
        name, _, generation = volume["metadata"]["name"].partition(".")
        self._api.create(make_volume(f"{name}.{int(generation or 0) + 1}", node))


_KINDS_TO_DELETE: Final = (
    "Pod",
    "PodDisruptionBudget",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "ResourceClaim",
    "ResourceSlice",
    "StorageClass",
    "Node",
)


def delete_all(api: ApiClient) -> None:
    """Delete all objects of the workload, without controllers: finalizers are removed.

    The objects are listed, because a kubelet may have replaced a volume after the end of the recording.
    """
    for kind in _KINDS_TO_DELETE:
        for obj in json.loads(api.list(kind))["items"]:
            api.delete(reference({**obj, "kind": kind}))
    api.delete_created()
