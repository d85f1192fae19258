"""Delete objects, with grace periods and finalizers.

An object with a grace period or finalizers is first only marked as deleted. A namespace is removed when it is empty.

Source: apiserver/pkg/registry/generic/registry/store.go, Store.Delete; apiserver/pkg/registry/rest/delete.go,
BeforeDelete (1.36).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from extender.api.timestamps import format_time
from extender.fake_apiserver.registry.api_errors import StatusError, new_forbidden
from extender.fake_apiserver.registry.metadata import check_preconditions, parse_timestamp
from extender.fake_apiserver.registry.pod_strategy import get_grace_period
from extender.fake_apiserver.registry.resources import API_RESOURCES, NAMESPACES, PODS, ApiResource, Object
from extender.fake_apiserver.registry.store import Store

_PROTECTED_NAMESPACES: Final = ("default", "kube-system", "kube-public")


@dataclass(frozen=True, slots=True)
class Deleter:
    """Deletes objects from a store."""

    store: Store
    now: Callable[[], str]

    def delete(self, resource: ApiResource, old: Object, options: Object, *, dry_run: bool) -> tuple[Object, bool]:
        """Delete an object or start its deletion; return its last state and whether it was removed.

        Raises:
            StatusError: 403 or 409.
        """
        check_preconditions(resource, old, options.get("preconditions") or {}, deleting=True)
        meta = old["metadata"]
        if resource is NAMESPACES and meta["name"] in _PROTECTED_NAMESPACES:
            raise new_forbidden(resource, meta["name"], "this namespace may not be deleted")
        requested_grace_seconds = options.get("gracePeriodSeconds")
        grace_seconds = (
            get_grace_period(old, None if requested_grace_seconds is None else int(requested_grace_seconds))
            if resource is PODS
            else 0
        )
        must_wait = grace_seconds > 0 or bool(meta.get("finalizers")) or resource is NAMESPACES
        if dry_run:
            return old, not must_wait
        if not must_wait:
            return self._remove(resource, self._make_final_state(old) if resource is PODS else old), True
        old_grace_seconds = meta.get("deletionGracePeriodSeconds", 0)
        if meta.get("deletionTimestamp") and grace_seconds >= old_grace_seconds:
            return old, False  # a grace period can only be shortened
        first_request_time = parse_timestamp(meta.get("deletionTimestamp") or self.now()) - old_grace_seconds
        updated_meta = {
            **meta,
            "deletionTimestamp": format_time(first_request_time + grace_seconds),
            "deletionGracePeriodSeconds": grace_seconds,
        }
        content = {**old, "metadata": _increment_generation(meta, updated_meta)}
        if resource is NAMESPACES:
            content["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
        stored_content = self.store.put(resource.storage_key, content)
        if resource is NAMESPACES:
            self._delete_contents(meta["name"])
            return stored_content, self.store.get(resource.storage_key, "", meta["name"]) is None
        return stored_content, False

    def _make_final_state(self, pod: Object) -> Object:
        """Return the last state of a pod, which has a deletion timestamp and a grace period of 0."""
        meta = pod["metadata"]
        return {
            **pod,
            "metadata": _increment_generation(
                meta, {**meta, "deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}
            ),
        }

    def finish_deletion(self, resource: ApiResource, content: Object) -> Object:
        """Remove an updated object if it is being deleted and has neither finalizers nor a grace period.

        Return the last state of the object.
        """
        meta = content["metadata"]
        removable = meta.get("deletionTimestamp") and not meta.get("finalizers") and resource is not NAMESPACES
        if removable and not meta.get("deletionGracePeriodSeconds"):
            return self._remove(resource, content)
        return content

    def _remove(self, resource: ApiResource, old: Object) -> Object:
        meta = old["metadata"]
        namespace = meta.get("namespace", "")
        removed_object = self.store.remove(resource.storage_key, namespace, meta["name"], old) or old
        if namespace:
            self._remove_empty_namespace(namespace)
        return removed_object

    def _delete_contents(self, namespace: str) -> None:
        for resource in API_RESOURCES:
            if resource.namespaced:
                for stored_object in self.store.list_objects(resource.storage_key, namespace):
                    try:
                        self.delete(resource, stored_object.content, {}, dry_run=False)
                    except StatusError:
                        continue  # the namespace is not removed while it contains the object
        self._remove_empty_namespace(namespace)

    def _remove_empty_namespace(self, namespace: str) -> None:
        """Remove a namespace if it is terminating and empty."""
        stored_namespace = self.store.get(NAMESPACES.storage_key, "", namespace)
        if stored_namespace is None or not stored_namespace["metadata"].get("deletionTimestamp"):
            return
        if not any(
            self.store.list_objects(resource.storage_key, namespace)
            for resource in API_RESOURCES
            if resource.namespaced
        ):
            self.store.remove(NAMESPACES.storage_key, "", namespace)


def _increment_generation(old_meta: Object, new_meta: Object) -> Object:
    """Return *new_meta*, with the next generation if the old object has a generation and is not being deleted yet."""
    if "generation" in old_meta and not old_meta.get("deletionTimestamp"):
        return {**new_meta, "generation": old_meta["generation"] + 1}
    return new_meta
