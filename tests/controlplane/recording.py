"""The history of a trial, as the store and the audit log of the API server have it.

Read from etcd, not from the API server: nothing is missed while the latter is down, and every pod and every lease
stands in one order.
"""

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import httpx2

from tests.controlplane.plane import ControlPlane
from tests.history import Binding, History, Renewal, State

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
"""Where the API server has kube-scheduler's lease."""

_LEASE: Final = "kube-system/kube-scheduler"
_ROOT: Final = "/registry/"
_KINDS: Final = {"pods": "Pod", "minions": "Node", "leases": "Lease"}
_MARK: Final = f"{_ROOT}zz-end-of-a-trial"
_PATIENCE: Final = 30.0


class Recording:
    """What happens from now on, to pods, nodes and kube-scheduler's lease."""

    def __init__(self, plane: ControlPlane) -> None:
        self._store = httpx2.Client(base_url=plane.etcd_url, timeout=_PATIENCE, trust_env=False)
        self._audit = plane.audit_log
        self._next = self._mark() + 1
        self._states: list[State] = []
        self._skip = self._audit.stat().st_size

    def history(self) -> History:
        """All that has happened until now."""
        self.catch_up()
        bindings, renewals = self._writes()
        return History(tuple(self._states), tuple(bindings), tuple(renewals))

    def catch_up(self) -> int:
        """Reads what the store holds; the revision it is at. To be called before the store forgets."""
        end = self._mark()
        wanted = {"key": _text(_ROOT), "range_end": _text("/registry0"), "start_revision": self._next}
        with self._store.stream("POST", "/v3/watch", json={"create_request": wanted}) as reply:
            for event in _events(reply):
                revision = int(event["kv"]["mod_revision"])
                if revision >= end:
                    break
                self._note(revision, event)
        self._next = end + 1
        return end

    def compact(self) -> None:
        """Has the store forget everything but the present."""
        self._store.post("/v3/kv/compaction", json={"revision": self.catch_up(), "physical": True}).raise_for_status()

    def _mark(self) -> int:
        """Writes a key that the API server never reads; the revision of the store with it."""
        reply = self._store.post("/v3/kv/put", json={"key": _text(_MARK), "value": _text("")})
        return int(reply.raise_for_status().json()["header"]["revision"])

    def _note(self, revision: int, event: Any) -> None:
        plural, _, key = base64.b64decode(event["kv"]["key"]).decode().removeprefix(_ROOT).partition("/")
        kind = _KINDS.get(plural)
        if kind is None or (kind == "Lease" and key != _LEASE):
            return
        gone = event.get("type") == "DELETE"
        self._states.append(
            State(revision, kind, key, None if gone else json.loads(base64.b64decode(event["kv"]["value"])))
        )

    def _writes(self) -> tuple[list[Binding], list[Renewal]]:
        bindings, renewals = [], []
        for entry in self._entries():
            body, actor, accepted = entry["requestObject"], entry["user"]["uid"], entry["responseStatus"]["code"] < 300
            if body["kind"] == "Binding":
                at = _seconds(entry["requestReceivedTimestamp"])
                bindings.append(Binding(actor, body["metadata"]["uid"], at, accepted))
            elif accepted and f"{entry['objectRef']['namespace']}/{entry['objectRef']['name']}" == _LEASE:
                holder = body["spec"].get("holderIdentity") or ""
                renewals.append(Renewal(actor, holder, _seconds(entry["stageTimestamp"])))
        return bindings, renewals

    def _entries(self) -> Iterator[Any]:
        """What was asked and answered."""
        with self._audit.open("rb") as log:
            log.seek(self._skip)
            for line in log:
                entry = json.loads(line)
                if entry["stage"] == "ResponseComplete" and "requestObject" in entry:
                    yield entry


def _events(reply: httpx2.Response) -> Iterator[Any]:
    for line in reply.iter_lines():
        answer = json.loads(line)["result"]
        assert not answer.get("canceled"), f"etcd ends the watch: {answer}"
        yield from answer.get("events", ())


def _text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
