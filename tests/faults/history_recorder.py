"""Record the history of a scenario on the fake API server: all object states, and all writes with their senders."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from extender.basics.clock import Clock
from extender.fake_apiserver.registry.store import Store, StoreEvent
from tests.faulty_apiserver import FaultyHttpApp
from tests.scheduling_history import (
    Binding,
    History,
    LeaseRenewal,
    ObjectState,
    filter_by_actors,
    find_bindings_without_lease,
    find_double_bindings,
    find_overcommitted_nodes,
)

_KINDS = {"pods": "Pod", "nodes": "Node", "leases.coordination.k8s.io": "Lease"}
_SENDER: ContextVar[str] = ContextVar("sender", default="")


@dataclass(frozen=True)
class RecordedRequest:
    """A received HTTP request."""

    time: float
    user: str
    method: str
    path: str
    query: str


@dataclass
class HistoryRecorder:
    """Records from its construction on."""

    store: Store
    clock: Clock
    received: list[RecordedRequest] = field(default_factory=list)
    _states: list[ObjectState] = field(default_factory=list)
    _bindings: list[Binding] = field(default_factory=list)
    _renewals: list[LeaseRenewal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store.subscribe(self._on_change)

    def requests(self, method: str, path_suffix: str, *, watch: bool = False) -> list[RecordedRequest]:
        """Return the requests with this method and path suffix."""
        matching = [
            request for request in self.received if request.method == method and request.path.endswith(path_suffix)
        ]
        return [request for request in matching if ("watch=" in request.query) is watch]

    def binding_count(self) -> int:
        """Return how many bindings succeeded."""
        return len(self._bindings)

    def clear(self) -> None:
        """Clear all records."""
        for records in (self.received, self._states, self._bindings, self._renewals):
            records.clear()

    def violations(self, lease_seconds: float) -> list[str]:
        """Return all violations of the invariants I1, I2 and I4, with leases of *lease_seconds*."""
        history = History(self._states, self._bindings, self._renewals)
        schedulers = {binding.actor for binding in self._bindings if binding.actor}
        return [
            *find_double_bindings(history),
            *find_overcommitted_nodes(history),
            *find_bindings_without_lease(filter_by_actors(history, schedulers), lease_seconds),
        ]

    def _on_change(self, resource: str) -> None:
        if resource not in _KINDS:
            return
        for change in self.store.list_changes_since(
            resource, self.store.resource_version - 1
        ):  # the change that triggered this call
            obj, time, user = change.stored_object.content, self.clock.monotonic(), _SENDER.get()
            metadata, is_deleted = obj["metadata"], change.event is StoreEvent.DELETED
            key = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
            self._states.append(
                ObjectState(change.resource_version, _KINDS[resource], key, None if is_deleted else obj)
            )
            old_spec = change.previous_object.content["spec"] if change.previous_object else obj.get("spec", {})
            if resource == "pods" and not is_deleted and obj["spec"].get("nodeName") != old_spec.get("nodeName"):
                self._bindings.append(Binding(user, metadata["uid"], time))
            elif resource.startswith("leases") and not is_deleted:
                self._renewals.append(LeaseRenewal(user, obj["spec"].get("holderIdentity") or "", time))


class RecordingApp(FaultyHttpApp):
    """Records every request, and the sender of every write."""

    recorder: HistoryRecorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = dict(scope["headers"]).get(b"impersonate-user", b"").decode()
        query = scope["query_string"].decode()
        recorder = self.recorder
        recorder.received.append(
            RecordedRequest(recorder.clock.monotonic(), user, scope["method"], scope["path"], query)
        )
        _SENDER.set(user)
        await super().__call__(scope, receive, send)
