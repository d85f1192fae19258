"""The API without HTTP: what may be done with objects, and what the server makes of it.

Everything here happens at once, within one call; there is nothing to wait for.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from extender.basics.clock import Clock, SystemClock
from extender.objects.defaults import DEFAULT_NAMESPACE, SYSTEM_PRIORITIES
from extender.objects.times import stamp
from extender.sandbox import kind_rules, pod_rules
from extender.sandbox.deletion import Deletion
from extender.sandbox.json_patch import applied
from extender.sandbox.merging import merge, strategic_merge
from extender.sandbox.metadata import check_names, check_version, metadata_after, new_metadata
from extender.sandbox.refusals import RefusedError, Wrong, already_exists, forbidden, invalid, not_found
from extender.sandbox.served import NAMESPACES, NODES, PRIORITY_CLASSES, Object, Served, served
from extender.sandbox.store import Store

_NAMESPACES: Final = (DEFAULT_NAMESPACE, "kube-node-lease", "kube-public", "kube-system")


class Api:
    """The rules of the server over one store.

    Attributes:
        store: the objects.
        clock: gives the time stamps.
    """

    def __init__(self, store: Store | None = None, clock: Clock | None = None, seed: int = 0) -> None:
        """A server with what every cluster has: four namespaces and two priority classes.

        Args:
            store: where objects are kept; a new one if None.
            clock: the machine's own if None.
            seed: of UIDs and generated names.
        """
        self.store = store or Store()
        self.clock = clock or SystemClock()
        self._chance = random.Random(seed)  # noqa: S311  names are told apart, nothing is kept secret
        self._deletion = Deletion(self.store, self.now)
        for name in _NAMESPACES:
            if self.store.get(NAMESPACES.place, "", name) is None:
                self.create(NAMESPACES, "", {"metadata": {"name": name}})
        for name, value in SYSTEM_PRIORITIES.items():
            if self.store.get(PRIORITY_CLASSES.place, "", name) is None:
                self.create(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value})

    def now(self) -> str:
        """The time as objects carry it."""
        return stamp(self.clock.now())

    def add(self, manifest: Object) -> Object:
        """Create an object of the kind it says it is, in the namespace it says it is in, else in `default`.

        Raises:
            LookupError: there is no such kind here.
            RefusedError: as `create`.
        """
        kind = served(manifest)
        namespace = manifest.get("metadata", {}).get("namespace") or DEFAULT_NAMESPACE
        return self.create(kind, namespace if kind.namespaced else "", manifest)

    def get(self, kind: Served, namespace: str, name: str) -> Object:
        """The object.

        Raises:
            RefusedError: 404.
        """
        found = self.store.get(kind.place, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def create(self, kind: Served, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        """Create an object.

        Raises:
            RefusedError: 400, 403, 404 (the namespace), 409 or 422.
        """
        given = dict(body.get("metadata") or {})
        check_names(namespace, "", given)
        if given.get("resourceVersion"):
            raise RefusedError(500, "", "resourceVersion should not be set on objects to be created")
        meta = new_metadata(kind, {**given, "namespace": namespace}, self.now(), self._chance)
        if kind.namespaced:
            self._check_namespace(kind, namespace, meta["name"])
        else:
            del meta["namespace"]
        if self.store.get(kind.place, namespace, meta["name"]) is not None:
            raise already_exists(kind, meta["name"])
        thing = {**body, "apiVersion": kind.version, "kind": kind.kind, "metadata": meta}
        if kind.kind == "Pod":
            classes = {kept.object["metadata"]["name"]: kept.object for kept in self.store.all(PRIORITY_CLASSES.place)}
            thing = pod_rules.created(thing, classes)
        else:
            thing = kind_rules.created(kind.kind, thing, status_apart=kind.status)
        return thing if dry_run else self.store.put(kind.place, thing)

    def _check_namespace(self, kind: Served, namespace: str, name: str) -> None:
        found = self.get(NAMESPACES, "", namespace)
        if found["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(kind, name, why)

    def update(
        self, kind: Served, namespace: str, name: str, body: Object, *, part: str = "", dry_run: bool = False
    ) -> tuple[Object, bool]:
        """Put an object in place of the one there is; what is there then, and whether it is new.

        Args:
            kind: what it is.
            namespace: where it is.
            name: its name.
            body: what is to be there.
            part: `status` to write just that; empty to write all else.
            dry_run: say what would be, and do nothing.

        Raises:
            RefusedError: 400, 404, 409 or 422.
        """
        check_names(namespace, name, body.get("metadata") or {})
        old = self.store.get(kind.place, namespace, name)
        if old is None:
            if kind.made_by_update and not part:
                return self.create(kind, namespace, body, dry_run=dry_run), True
            raise not_found(kind, name)
        check_version(kind, old, body)
        return self._write(kind, old, body, part, dry_run=dry_run), False

    def patch(
        self,
        kind: Served,
        namespace: str,
        name: str,
        patch: Object | Sequence[Any],
        *,
        strategic: bool = False,
        part: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Change what a patch names: a strategic merge patch, else a JSON merge patch; a list is a JSON patch.

        Raises:
            RefusedError: 400, 404, 409 or 422.
        """
        old = self.get(kind, namespace, name)
        if not isinstance(patch, dict):
            new = applied(old, patch)
        else:
            new = strategic_merge(old, patch, kind.kind) if strategic else merge(old, patch)
        check_names(namespace, name, new.get("metadata") or {})
        asked = new.get("metadata") or {}
        if asked.get("uid", uid := old["metadata"]["uid"]) != uid:
            message = f'Invalid value: "{asked["uid"]}": field is immutable'
            raise invalid(kind, name, [Wrong("metadata.uid", "FieldValueInvalid", message)])
        version = asked.get("resourceVersion") or old["metadata"]["resourceVersion"]
        check_version(kind, old, {"metadata": {"resourceVersion": version}})
        return self._write(kind, old, new, part, dry_run=dry_run)

    def _write(self, kind: Served, old: Object, new: Object, part: str, *, dry_run: bool) -> Object:
        thing = {**new, "apiVersion": kind.version, "kind": kind.kind}
        if part == "status":
            thing = {**old, "metadata": new.get("metadata") or {}, "status": new.get("status") or {}}
        elif kind.status:
            thing["status"] = old.get("status") or {}
        changed = thing.get("spec") != old.get("spec")
        thing["metadata"] = metadata_after(kind, old, thing, spec_changed=changed)
        if kind.kind == "Pod":
            pod_rules.check_update(old, thing)
        else:
            kind_rules.check_update(kind.kind, old, thing)
            thing = kind_rules.updated(kind.kind, thing)
        if thing == old or dry_run:
            return thing
        return self._deletion.after_write(kind, self.store.put(kind.place, thing))

    def change(self, kind: Served, namespace: str, name: str, how: Callable[[Object], Object]) -> Object:
        """Write what *how* makes of the object, past the rules for callers: for the server itself and for kubelets.

        Raises:
            RefusedError: 404, or what *how* raises.
        """
        return self._deletion.after_write(kind, self.store.put(kind.place, how(self.get(kind, namespace, name))))

    def delete(
        self, kind: Served, namespace: str, name: str, options: Object | None = None, *, dry_run: bool = False
    ) -> tuple[Object, bool]:
        """Delete an object, or have it end: its last state, and whether it is gone.

        Args:
            kind: what it is.
            namespace: where it is.
            name: its name.
            options: a DeleteOptions, of which `gracePeriodSeconds` and `preconditions` count.
            dry_run: say what would be, and do nothing.

        Raises:
            RefusedError: 404, or 409 for a precondition.
        """
        return self._deletion.delete(kind, self.get(kind, namespace, name), options or {}, dry_run=dry_run)

    def remove(self, kind: Served, namespace: str, name: str) -> None:
        """Have an object be gone at once, if it is there: what a kubelet does in the end.

        Finalizers keep it.
        """
        try:
            self.delete(kind, namespace, name, {"gracePeriodSeconds": 0})
        except RefusedError as refused:
            if refused.code != 404:
                raise

    def nodes(self) -> list[Object]:
        """All nodes, by name."""
        return [kept.object for kept in self.store.all(NODES.place)]

    def each(self, kind: Served, namespace: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, by namespace and name."""
        return [kept.object for kept in self.store.all(kind.place, namespace)]
