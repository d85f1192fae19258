"""Records the history of a test from etcd and from the audit log of the API server.

States are read from etcd, because the API server may be down, and because the revisions of etcd order pods and leases.
"""

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import httpx2

from tests.controlplane.control_plane import ControlPlane
from tests.scheduling_history import Binding, History, LeaseRenewal, ObjectState

LEASE_PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
"""The path of kube-scheduler's lease at the API server."""

_LEASE_KEY: Final = "kube-system/kube-scheduler"
_KEY_PREFIX: Final = "/registry/"
_KIND_BY_PLURAL: Final = {"pods": "Pod", "minions": "Node", "leases": "Lease"}
_MARKER_KEY: Final = f"{_KEY_PREFIX}zz-end-of-recording"
_TIMEOUT: Final = 30.0


class HistoryRecorder:
    """Records all states of pods, nodes and kube-scheduler's lease from now on."""

    def __init__(self, plane: ControlPlane) -> None:
        self._store = httpx2.Client(base_url=plane.etcd_url, timeout=_TIMEOUT, trust_env=False)
        self._audit = plane.audit_log
        self._next_revision = self._write_marker() + 1
        self._states: list[ObjectState] = []
        self._audit_start = self._audit.stat().st_size

    def history(self) -> History:
        """Return the history until now."""
        self.read_new_states()
        bindings, renewals = self._read_audit_log()
        return History(tuple(self._states), tuple(bindings), tuple(renewals))

    def read_new_states(self) -> int:
        """Read the new states and return the current revision. A compaction loses states that were not read."""
        end = self._write_marker()
        create_request = {
            "key": _encode(_KEY_PREFIX),
            "range_end": _encode("/registry0"),
            "start_revision": self._next_revision,
        }
        with self._store.stream("POST", "/v3/watch", json={"create_request": create_request}) as reply:
            for event in _watch_events(reply):
                revision = int(event["kv"]["mod_revision"])
                if revision >= end:
                    break
                self._add_state(revision, event)
        self._next_revision = end + 1
        return end

    def compact(self) -> None:
        """Compact etcd at the current revision."""
        self._store.post(
            "/v3/kv/compaction", json={"revision": self.read_new_states(), "physical": True}
        ).raise_for_status()

    def _write_marker(self) -> int:
        """Write a key that the API server never reads, and return its revision."""
        reply = self._store.post("/v3/kv/put", json={"key": _encode(_MARKER_KEY), "value": _encode("")})
        return int(reply.raise_for_status().json()["header"]["revision"])

    def _add_state(self, revision: int, event: Any) -> None:
        plural, _, key = base64.b64decode(event["kv"]["key"]).decode().removeprefix(_KEY_PREFIX).partition("/")
        kind = _KIND_BY_PLURAL.get(plural)
        if kind is None or (kind == "Lease" and key != _LEASE_KEY):
            return
        is_deleted = event.get("type") == "DELETE"
        self._states.append(
            ObjectState(revision, kind, key, None if is_deleted else json.loads(base64.b64decode(event["kv"]["value"])))
        )

    def _read_audit_log(self) -> tuple[list[Binding], list[LeaseRenewal]]:
        bindings, renewals = [], []
        for entry in self._audit_entries():
            body, actor, accepted = entry["requestObject"], entry["user"]["uid"], entry["responseStatus"]["code"] < 300
            if body["kind"] == "Binding":
                at = _timestamp(entry["requestReceivedTimestamp"])
                bindings.append(Binding(actor, body["metadata"]["uid"], at, accepted))
            elif accepted and f"{entry['objectRef']['namespace']}/{entry['objectRef']['name']}" == _LEASE_KEY:
                holder = body["spec"].get("holderIdentity") or ""
                renewals.append(LeaseRenewal(actor, holder, _timestamp(entry["stageTimestamp"])))
        return bindings, renewals

    def _audit_entries(self) -> Iterator[Any]:
        """Yield the entries with a request body and a response."""
        with self._audit.open("rb") as log:
            log.seek(self._audit_start)
            for line in log:
                entry = json.loads(line)
                if entry["stage"] == "ResponseComplete" and "requestObject" in entry:
                    yield entry


def _watch_events(reply: httpx2.Response) -> Iterator[Any]:
    for line in reply.iter_lines():
        result = json.loads(line)["result"]
        assert not result.get("canceled"), f"etcd ends the watch: {result}"
        yield from result.get("events", ())


def _encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _timestamp(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
