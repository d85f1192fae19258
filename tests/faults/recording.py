"""The history of a trial on the sandbox: every state as the store had it, every write with who sent it."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from extender.basics.clock import Clock
from extender.sandbox.app import App
from extender.sandbox.store import Happened, Store
from tests.history import Binding, History, Renewal, State, bound_by, bound_twice, out_of_turn, overfull

_KINDS = {"pods": "Pod", "nodes": "Node", "leases.coordination.k8s.io": "Lease"}
_SENDER: ContextVar[str] = ContextVar("sender", default="")


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    at: float
    who: str
    method: str
    path: str
    query: str


@dataclass
class Recording:
    """What happens from now on."""

    store: Store
    clock: Clock
    asked: list[Asked] = field(default_factory=list)
    _states: list[State] = field(default_factory=list)
    _bindings: list[Binding] = field(default_factory=list)
    _renewals: list[Renewal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store.listen(self._look)

    def requests(self, method: str, ending: str, *, watch: bool = False) -> list[Asked]:
        """The requests for what ends like a path."""
        of_it = [each for each in self.asked if each.method == method and each.path.endswith(ending)]
        return [each for each in of_it if ("watch=" in each.query) is watch]

    def placements(self) -> int:
        """How many bindings were carried out."""
        return len(self._bindings)

    def forget(self) -> None:
        """Forget all that has happened."""
        for kept in (self.asked, self._states, self._bindings, self._renewals):
            kept.clear()

    def wrong(self, lasts: float) -> list[str]:
        """Every breach of I1, I2 and I4, where a lease lasts so many seconds."""
        whole = History(self._states, self._bindings, self._renewals)
        schedulers = {binding.actor for binding in self._bindings if binding.actor}
        return [*bound_twice(whole), *overfull(whole), *out_of_turn(bound_by(whole, schedulers), lasts)]

    def _look(self, place: str) -> None:
        if place not in _KINDS:
            return
        for change in self.store.changes(place, self.store.version - 1):  # the one that we are told of
            thing, now, who = change.kept.object, self.clock.monotonic(), _SENDER.get()
            meta, gone = thing["metadata"], change.happened is Happened.DELETED
            key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
            self._states.append(State(change.number, _KINDS[place], key, None if gone else thing))
            before = change.before.object["spec"] if change.before else thing.get("spec", {})
            if place == "pods" and not gone and thing["spec"].get("nodeName") != before.get("nodeName"):
                self._bindings.append(Binding(who, meta["uid"], now))
            elif place.startswith("leases") and not gone:
                self._renewals.append(Renewal(who, thing["spec"].get("holderIdentity") or "", now))


class Listening(App):
    """An application that writes down every request as it arrives, and knows whose a write is."""

    recording: Recording

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        who = dict(scope["headers"]).get(b"impersonate-user", b"").decode()
        query = scope["query_string"].decode()
        recording = self.recording
        recording.asked.append(Asked(recording.clock.monotonic(), who, scope["method"], scope["path"], query))
        _SENDER.set(who)
        await super().__call__(scope, receive, send)
