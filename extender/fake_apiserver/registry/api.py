"""Create, read, update, patch and delete objects with the server's defaults and validation, without HTTP.

All operations are synchronous.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from extender.api.defaults import DEFAULT_NAMESPACE, SYSTEM_PRIORITIES
from extender.api.timestamps import format_time
from extender.basics.clock import Clock, SystemClock
from extender.fake_apiserver.registry import pod_strategy, strategies
from extender.fake_apiserver.registry.api_errors import (
    StatusCause,
    StatusError,
    new_already_exists,
    new_forbidden,
    new_invalid,
    new_not_found,
)
from extender.fake_apiserver.registry.metadata import (
    build_metadata,
    check_metadata,
    check_names,
    check_patched_metadata,
    check_preconditions,
    check_resource_version,
    parse_timestamp,
    update_metadata,
)
from extender.fake_apiserver.registry.patch import apply_json_patch, apply_merge_patch, apply_strategic_merge_patch
from extender.fake_apiserver.registry.resources import (
    API_RESOURCES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    ApiResource,
    Object,
    find_resource,
)
from extender.fake_apiserver.registry.store import Store

_PROTECTED_NAMESPACES: Final = ("default", "kube-system", "kube-public")
_INITIAL_NAMESPACES: Final = (DEFAULT_NAMESPACE, "kube-node-lease", "kube-public", "kube-system")


class Api:
    """The operations of the Kubernetes API on the objects of one store."""

    def __init__(self, store: Store | None = None, clock: Clock | None = None, seed: int = 0) -> None:
        """Create the initial objects of a cluster: four namespaces and two priority classes.

        By default, there are a new store and the system clock. *seed* is that of UIDs and generated names.
        """
        self.store = store or Store()
        self.clock = clock or SystemClock()
        self._rng = random.Random(seed)  # noqa: S311  not used for secrets
        for name in _INITIAL_NAMESPACES:
            if self.store.get(NAMESPACES.storage_key, "", name) is None:
                self.create(NAMESPACES, "", {"metadata": {"name": name}})
        for name, value in SYSTEM_PRIORITIES.items():
            if self.store.get(PRIORITY_CLASSES.storage_key, "", name) is None:
                self.create(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value})

    def now(self) -> str:
        """Return the current timestamp."""
        return format_time(self.clock.now())

    def create_from_manifest(self, manifest: Object) -> Object:
        """Create an object of the manifest's kind, in its namespace or `default`.

        Raises:
            LookupError: the server has no such resource.
            StatusError: as for `create`.
        """
        resource = find_resource(manifest)
        namespace = manifest.get("metadata", {}).get("namespace") or DEFAULT_NAMESPACE
        return self.create(resource, namespace if resource.namespaced else "", manifest)

    def get(self, resource: ApiResource, namespace: str, name: str) -> Object:
        """Return the object.

        Raises:
            StatusError: 404.
        """
        content = self.store.get(resource.storage_key, namespace, name)
        if content is None:
            raise new_not_found(resource, name)
        return content

    def create(self, resource: ApiResource, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        """Create an object.

        Raises:
            StatusError: 400, 403, 404 for an unknown namespace, 409 or 422.
        """
        check_metadata(resource, body)
        requested_meta = dict(body.get("metadata") or {})
        check_names(namespace, "", requested_meta)
        if requested_meta.get("resourceVersion"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        meta = build_metadata(resource, {**requested_meta, "namespace": namespace}, self.now(), self._rng)
        if resource.namespaced:
            self._check_namespace(resource, namespace, meta["name"])
        else:
            del meta["namespace"]
        if self.store.get(resource.storage_key, namespace, meta["name"]) is not None:
            raise new_already_exists(resource, meta["name"])
        content = {**body, "apiVersion": resource.group_version, "kind": resource.kind, "metadata": meta}
        if resource.kind == "Pod":
            priority_classes = {
                stored_object.content["metadata"]["name"]: stored_object.content
                for stored_object in self.store.list_objects(PRIORITY_CLASSES.storage_key)
            }
            content = pod_strategy.prepare_for_create(content, priority_classes)
        else:
            content = strategies.prepare_for_create(resource.kind, content, has_status=resource.has_status)
        return content if dry_run else self.store.put(resource.storage_key, content)

    def _check_namespace(self, resource: ApiResource, namespace: str, name: str) -> None:
        stored_namespace = self.get(NAMESPACES, "", namespace)
        if stored_namespace["metadata"].get("deletionTimestamp"):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise new_forbidden(resource, name, message)

    def update(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> tuple[Object, bool]:
        """Replace an object; return the stored object and whether it was created.

        *subresource* is `status` to update only the status; if it is empty, all fields except the status are updated.
        With *dry_run* the result is not stored.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        check_metadata(resource, body)
        check_names(namespace, name, body.get("metadata") or {})
        old_object = self.store.get(resource.storage_key, namespace, name)
        if old_object is None:
            if resource.allow_create_on_update and not subresource:
                return self.create(resource, namespace, body, dry_run=dry_run), True
            raise new_not_found(resource, name)
        check_resource_version(resource, old_object, body)
        return self._store_update(resource, old_object, body, subresource, dry_run=dry_run), False

    def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: Object | Sequence[Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Apply a JSON merge patch, or a JSON patch if *patch* is a list.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        old_object = self.get(resource, namespace, name)
        patched_object = (
            apply_merge_patch(old_object, patch) if isinstance(patch, dict) else apply_json_patch(old_object, patch)
        )
        return self._store_patched(resource, old_object, patched_object, subresource, dry_run=dry_run)

    def patch_strategically(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        patch: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Apply a strategic merge patch.

        Raises:
            StatusError: 400, 404, 409 or 422.
        """
        old_object = self.get(resource, namespace, name)
        patched_object = apply_strategic_merge_patch(old_object, patch, resource.kind)
        return self._store_patched(resource, old_object, patched_object, subresource, dry_run=dry_run)

    def _store_patched(
        self, resource: ApiResource, old_object: Object, patched_object: Object, subresource: str, *, dry_run: bool
    ) -> Object:
        """Store *patched_object* if its name, uid and resource version are those of *old_object*."""
        check_patched_metadata(patched_object)
        name = old_object["metadata"]["name"]
        namespace = old_object["metadata"].get("namespace", "")
        check_names(namespace, name, patched_object.get("metadata") or {})
        patched_meta = patched_object.get("metadata") or {}
        if patched_meta.get("uid", uid := old_object["metadata"]["uid"]) != uid:
            message = f'Invalid value: "{patched_meta["uid"]}": field is immutable'
            raise new_invalid(resource, name, [StatusCause("metadata.uid", "FieldValueInvalid", message)])
        version = patched_meta.get("resourceVersion") or old_object["metadata"]["resourceVersion"]
        check_resource_version(resource, old_object, {"metadata": {"resourceVersion": version}})
        return self._store_update(resource, old_object, patched_object, subresource, dry_run=dry_run)

    def _store_update(
        self, resource: ApiResource, old: Object, new: Object, subresource: str, *, dry_run: bool
    ) -> Object:
        content = {**new, "apiVersion": resource.group_version, "kind": resource.kind}
        if subresource == "status":
            content = {**old, "metadata": new.get("metadata") or {}, "status": new.get("status") or {}}
        elif resource.has_status:
            content["status"] = old.get("status") or {}
        spec_changed = content.get("spec") != old.get("spec")
        content["metadata"] = update_metadata(resource, old, content, spec_changed=spec_changed)
        if resource.kind == "Pod":
            pod_strategy.validate_update(old, content)
        else:
            strategies.validate_update(resource.kind, old, content)
            content = strategies.prepare_for_update(resource.kind, content)
        if content == old or dry_run:
            return content
        return self._finish_deletion(resource, self.store.put(resource.storage_key, content))

    def guaranteed_update(
        self, resource: ApiResource, namespace: str, name: str, update: Callable[[Object], Object]
    ) -> Object:
        """Store the result of *update* without validation. The server itself and the kubelets use this method.

        Raises:
            StatusError: 404, or an error that *update* raises.
        """
        return self._finish_deletion(
            resource, self.store.put(resource.storage_key, update(self.get(resource, namespace, name)))
        )

    def delete(
        self, resource: ApiResource, namespace: str, name: str, options: Object | None = None, *, dry_run: bool = False
    ) -> tuple[Object, bool]:
        """Delete an object or start its deletion; return its last state and whether it was removed.

        An object with a grace period or finalizers is first only marked as deleted. A namespace is removed when it is
        empty. Of the DeleteOptions, only `gracePeriodSeconds` and `preconditions` are used. With *dry_run* the result
        is not stored.

        Raises:
            StatusError: 403 for a namespace of the system, 404, or 409 for a failed precondition.

        Source: apiserver/pkg/registry/generic/registry/store.go, Store.Delete;
        apiserver/pkg/registry/rest/delete.go, BeforeDelete (1.36).
        """
        old, options = self.get(resource, namespace, name), options or {}
        check_preconditions(resource, old, options.get("preconditions") or {}, deleting=True)
        meta = old["metadata"]
        if resource is NAMESPACES and meta["name"] in _PROTECTED_NAMESPACES:
            raise new_forbidden(resource, meta["name"], "this namespace may not be deleted")
        grace_seconds = 0
        if resource is PODS:
            requested = options.get("gracePeriodSeconds")
            grace_seconds = pod_strategy.get_grace_period(old, None if requested is None else int(requested))
        must_wait = grace_seconds > 0 or bool(meta.get("finalizers")) or resource is NAMESPACES
        if dry_run:
            return old, not must_wait
        if not must_wait:
            if resource is PODS:
                final_meta = {**meta, "deletionTimestamp": self.now(), "deletionGracePeriodSeconds": 0}
                old = {**old, "metadata": _increment_generation(meta, final_meta)}
            return self._remove(resource, old), True
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

    def _finish_deletion(self, resource: ApiResource, content: Object) -> Object:
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
                        self.delete(resource, namespace, stored_object.content["metadata"]["name"])
                    except StatusError:
                        continue  # the namespace is not removed while it contains the object
        self._remove_empty_namespace(namespace)

    def _remove_empty_namespace(self, namespace: str) -> None:
        stored_namespace = self.store.get(NAMESPACES.storage_key, "", namespace)
        if stored_namespace is None or not stored_namespace["metadata"].get("deletionTimestamp"):
            return
        if not any(
            self.store.list_objects(resource.storage_key, namespace)
            for resource in API_RESOURCES
            if resource.namespaced
        ):
            self.store.remove(NAMESPACES.storage_key, "", namespace)

    def delete_now(self, resource: ApiResource, namespace: str, name: str) -> None:
        """Delete an object without a grace period, as a kubelet does. A missing object is ignored.

        Finalizers delay the removal nevertheless.
        """
        try:
            self.delete(resource, namespace, name, {"gracePeriodSeconds": 0})
        except StatusError as error:
            if error.code != 404:
                raise

    def list_objects(self, resource: ApiResource, namespace: str = "") -> list[dict[str, Any]]:
        """Return the objects of a resource, sorted by namespace and name; an empty namespace means all."""
        return [stored_object.content for stored_object in self.store.list_objects(resource.storage_key, namespace)]


def _increment_generation(old_meta: Object, new_meta: Object) -> Object:
    """Return *new_meta*, with the next generation if the old object has a generation and is not being deleted yet."""
    if "generation" in old_meta and not old_meta.get("deletionTimestamp"):
        return {**new_meta, "generation": old_meta["generation"] + 1}
    return new_meta
