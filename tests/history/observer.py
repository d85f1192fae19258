"""Records the history of a cluster from etcd, while it runs, and from the audit log of the API server.

One watch of etcd has the events of all kinds in the order of their revisions, also while the API server is down. A
watch per kind at the API server would have the same states without an order between the kinds.
"""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import httpx2

from tests.controlplane.control_plane import ControlPlane
from tests.history.cluster_state import Change, ClusterState, History
from tests.scheduling_history import Binding, LeaseRenewal

LEASE_KEY: Final = "kube-system/kube-scheduler"
"""The key of kube-scheduler's lease."""

_PREFIX: Final = "/registry/"
_MARKER: Final = f"{_PREFIX}zz-end-of-history"
_KIND_BY_PLURAL: Final = {
    "pods": "Pod",
    "minions": "Node",
    "leases": "Lease",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "storageclasses": "StorageClass",
    "resourceslices": "ResourceSlice",
    "resourceclaims": "ResourceClaim",
}
_TIMEOUT: Final = 60.0


class Observer:
    """Records all changes of the kinds of a history from now on, in a thread.

    Args:
        plane: the control plane; etcd must run.

    Attributes:
        error: the exception that ended the thread.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.error: Exception | None = None
        self._store = httpx2.Client(base_url=plane.etcd_url, timeout=_TIMEOUT, trust_env=False)
        self._audit_log = plane.audit_log
        self._audit_start = self._audit_log.stat().st_size
        self._start_revision = self._write_marker() + 1
        self._end_revision = 0
        self._changes: list[Change] = []
        self._state = ClusterState()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._record, name="observer", daemon=True)
        self._thread.start()

    def state(self) -> ClusterState:
        """Return a copy of the current state."""
        with self._lock:
            return self._state.copy()

    def history(self) -> History:
        """Return the history until now. The audit log is read as a whole."""
        bindings, renewals = self._read_audit_log()
        with self._lock:
            return History(tuple(self._changes), tuple(bindings), tuple(renewals))

    def stop(self) -> History:
        """End the recording and return the history until now.

        Raises:
            RuntimeError: the watch of etcd ended early.
        """
        self._end_revision = self._write_marker()
        self._write_marker()  # an event after the end, so that the thread compares its revision
        self._thread.join(_TIMEOUT)
        self._store.close()
        if self.error is not None or self._thread.is_alive():
            raise RuntimeError("the watch of etcd ended early") from self.error
        return self.history()

    def _write_marker(self) -> int:
        """Write a key that the API server never reads, and return its revision."""
        reply = self._store.post("/v3/kv/put", json={"key": _encode(_MARKER), "value": _encode("")})
        return int(reply.raise_for_status().json()["header"]["revision"])

    def _record(self) -> None:
        request = {"key": _encode(_PREFIX), "range_end": _encode("/registry0"), "start_revision": self._start_revision}
        timeout = httpx2.Timeout(_TIMEOUT, read=None)
        try:
            with self._store.stream("POST", "/v3/watch", json={"create_request": request}, timeout=timeout) as reply:
                for event in _watch_events(reply):
                    revision = int(event["kv"]["mod_revision"])
                    if 0 < self._end_revision <= revision:
                        return
                    self._add(revision, event)
        except (httpx2.HTTPError, ValueError, KeyError, RuntimeError) as error:
            self.error = error

    def _add(self, revision: int, event: Any) -> None:
        path = base64.b64decode(event["kv"]["key"]).decode().removeprefix(_PREFIX)
        plural, _, key = path.partition("/")
        kind = _KIND_BY_PLURAL.get(plural)
        if kind is None or (kind == "Lease" and key != LEASE_KEY):
            return
        obj: dict[str, Any] | None = None
        if event.get("type") != "DELETE":
            obj = {"kind": kind, **json.loads(base64.b64decode(event["kv"]["value"]))}
            obj["metadata"]["resourceVersion"] = str(revision)  # etcd's value has none
        change = Change(revision, time.time(), kind, key, obj)
        with self._lock:
            self._changes.append(change)
            self._state.apply(change)

    def _read_audit_log(self) -> tuple[list[Binding], list[LeaseRenewal]]:
        bindings, renewals = [], []
        for entry in self._audit_entries():
            body, actor = entry["requestObject"], entry["user"]["uid"]
            is_accepted = entry["responseStatus"]["code"] < 300
            if body["kind"] == "Binding":
                received = _timestamp(entry["requestReceivedTimestamp"])
                bindings.append(Binding(actor, body["metadata"]["uid"], received, is_accepted))
            elif is_accepted and f"{entry['objectRef']['namespace']}/{entry['objectRef'].get('name')}" == LEASE_KEY:
                holder = body["spec"].get("holderIdentity") or ""
                renewals.append(LeaseRenewal(actor, holder, _timestamp(entry["stageTimestamp"])))
        return bindings, renewals

    def _audit_entries(self) -> Iterator[Any]:
        """Yield the entries with a request body and a response; skip the line that a killed API server cut off."""
        with self._audit_log.open("rb") as log:
            log.seek(self._audit_start)
            for line in log:
                with suppress(ValueError):
                    entry = json.loads(line)
                    if entry["stage"] == "ResponseComplete" and "requestObject" in entry:
                        yield entry


def _watch_events(reply: httpx2.Response) -> Iterator[Any]:
    for line in reply.iter_lines():
        result = json.loads(line)["result"]
        if result.get("canceled"):
            raise RuntimeError(f"etcd ends the watch: {result}")
        yield from result.get("events", ())


def _encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _timestamp(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
