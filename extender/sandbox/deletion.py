"""How objects go: at once, after their grace period, after their finalizers; a namespace after all that is in it.

Source: registry.Store.Delete, rest.BeforeDelete, pkg/registry/core/pod/strategy.go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.objects.times import stamp
from extender.sandbox.metadata import check_preconditions, seconds_of
from extender.sandbox.pod_rules import grace
from extender.sandbox.refusals import RefusedError, forbidden
from extender.sandbox.served import NAMESPACES, PODS, SERVED, Object, Served
from extender.sandbox.store import Store

_KEPT_NAMESPACES: Final = ("default", "kube-system", "kube-public")


@dataclass(frozen=True, slots=True)
class Deletion:
    """Deletes from a store.

    Attributes:
        store: the objects.
        now: the time stamp.
    """

    store: Store
    now: Callable[[], str]

    def delete(self, kind: Served, old: Object, options: Object, *, dry_run: bool) -> tuple[Object, bool]:
        """Delete an object, or have it end: its last state, and whether it is gone.

        Raises:
            RefusedError: 403 or 409.
        """
        check_preconditions(kind, old, options.get("preconditions") or {}, deleting=True)
        meta = old["metadata"]
        if kind is NAMESPACES and meta["name"] in _KEPT_NAMESPACES:
            raise forbidden(kind, meta["name"], "this namespace may not be deleted")
        asked = options.get("gracePeriodSeconds")
        seconds = grace(old, None if asked is None else int(asked)) if kind is PODS else 0
        must_wait = seconds > 0 or bool(meta.get("finalizers")) or kind is NAMESPACES
        if dry_run:
            return old, not must_wait
        if not must_wait:
            return self._removed(kind, self._ended(old) if kind is PODS else old), True
        before = meta.get("deletionGracePeriodSeconds", 0)
        if meta.get("deletionTimestamp") and seconds >= before:
            return old, False  # a grace period only ever gets shorter
        started = seconds_of(meta["deletionTimestamp"]) - before if meta.get("deletionTimestamp") else None
        first = started if started is not None else seconds_of(self.now())
        ending = {**meta, "deletionTimestamp": stamp(first + seconds), "deletionGracePeriodSeconds": seconds}
        thing = {**old, "metadata": _counted(meta, ending)}
        if kind is NAMESPACES:
            thing["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
        stored = self.store.put(kind.place, thing)
        if kind is NAMESPACES:
            self._empty(meta["name"])
            return stored, self.store.get(kind.place, "", meta["name"]) is None
        return stored, False

    def _ended(self, pod: Object) -> Object:
        """The last state of a pod: no time is left to it."""
        meta = pod["metadata"]
        return {
            **pod,
            "metadata": _counted(meta, {**meta, "deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}),
        }

    def after_write(self, kind: Served, thing: Object) -> Object:
        """What becomes of an object that was written: it goes when nothing holds it back any more."""
        meta = thing["metadata"]
        ends = meta.get("deletionTimestamp") and not meta.get("finalizers") and kind is not NAMESPACES
        if ends and not meta.get("deletionGracePeriodSeconds"):
            return self._removed(kind, thing)
        return thing

    def _removed(self, kind: Served, old: Object) -> Object:
        meta = old["metadata"]
        namespace = meta.get("namespace", "")
        gone = self.store.remove(kind.place, namespace, meta["name"], old) or old
        if namespace:
            self._finish(namespace)
        return gone

    def _empty(self, namespace: str) -> None:
        for kind in SERVED:
            if kind.namespaced:
                for kept in self.store.all(kind.place, namespace):
                    try:
                        self.delete(kind, kept.object, {}, dry_run=False)
                    except RefusedError:
                        continue  # what may not be deleted keeps its namespace
        self._finish(namespace)

    def _finish(self, namespace: str) -> None:
        """Remove a namespace that ends and is empty."""
        found = self.store.get(NAMESPACES.place, "", namespace)
        if found is None or not found["metadata"].get("deletionTimestamp"):
            return
        if not any(self.store.all(kind.place, namespace) for kind in SERVED if kind.namespaced):
            self.store.remove(NAMESPACES.place, "", namespace)


def _counted(before: Object, after: Object) -> Object:
    """The metadata with the generation one higher, where one is kept, when an object begins to end."""
    if "generation" in before and not before.get("deletionTimestamp"):
        return {**after, "generation": before["generation"] + 1}
    return after
