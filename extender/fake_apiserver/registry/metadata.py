"""Set the metadata fields that the server owns, and check names, resource versions and preconditions."""

import random
import uuid
from dataclasses import replace
from datetime import datetime
from typing import Final

from extender.api.codec import DecodeError, from_builtins
from extender.api.kinds.meta import KubernetesObject
from extender.api.label_syntax import invalid_value, validate_subdomain
from extender.fake_apiserver.registry.api_errors import (
    StatusCause,
    StatusError,
    new_bad_request,
    new_conflict,
    new_invalid,
    new_invalid_patch,
    new_object_modified,
)
from extender.fake_apiserver.registry.resources import ApiResource, Object

_MAX_NAME_LENGTH: Final = 253
_SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SERVER_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_KINDS_WITH_GENERATION: Final = frozenset(
    {
        "DeviceClass",
        "Pod",
        "PodDisruptionBudget",
        "PriorityClass",
        "ReplicaSet",
        "ReplicationController",
        "ResourceSlice",
        "StatefulSet",
    }
)


def parse_timestamp(text: str) -> float:
    """Parse a metav1.Time or MicroTime to seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def build_metadata(resource: ApiResource, requested_meta: Object, now: str, rng: random.Random) -> Object:
    """Return the metadata of a new object.

    *requested_meta* has the namespace already; *rng* is for name suffixes and UIDs.

    Raises:
        StatusError: 422 if the name is missing or invalid.
    """
    name = requested_meta.get("name") or ""
    if not name and requested_meta.get("generateName"):
        name = requested_meta["generateName"] + "".join(rng.choices(_SUFFIX_CHARACTERS, k=5))
    cause = _validate_name(name)
    if cause is not None:
        raise new_invalid(resource, name, [cause])
    caller_fields = {
        key: value
        for key, value in requested_meta.items()
        if key not in {*_SERVER_FIELDS, "resourceVersion", "selfLink"}
    }
    server_fields: Object = {"uid": str(uuid.UUID(int=rng.getrandbits(128), version=4)), "creationTimestamp": now}
    if resource.kind in _KINDS_WITH_GENERATION:
        server_fields["generation"] = 1
    return {**caller_fields, "name": name, **server_fields}


def _validate_name(name: str) -> StatusCause | None:
    if not name:
        return StatusCause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")
    is_too_long = len(name) > _MAX_NAME_LENGTH
    error = f"must be no more than {_MAX_NAME_LENGTH} bytes" if is_too_long else validate_subdomain(name)
    return StatusCause("metadata.name", "FieldValueInvalid", invalid_value(name, error)) if error else None


def update_metadata(resource: ApiResource, old: Object, new: Object, *, spec_changed: bool) -> Object:
    """Return the metadata of an updated object.

    The names, the resourceVersion and the server's fields are those of *old*. All other fields are those of *new*.
    If *spec_changed* is true and the resource has a generation, the generation is incremented.
    """
    old_meta, requested_meta = old["metadata"], new.get("metadata") or {}
    caller_fields = {
        key: value for key, value in requested_meta.items() if key not in _SERVER_FIELDS and value not in (None, {}, [])
    }
    server_fields = {key: old_meta[key] for key in _SERVER_FIELDS if key in old_meta}
    if spec_changed and resource.kind in _KINDS_WITH_GENERATION:
        server_fields["generation"] = int(old_meta.get("generation", 1)) + 1
    names = {key: old_meta[key] for key in ("name", "namespace", "generateName") if key in old_meta}
    return {**caller_fields, **server_fields, **names, "resourceVersion": old_meta["resourceVersion"]}


def check_metadata(resource: ApiResource, body: Object) -> None:
    """Reject a body whose metadata has a field of another type than that of the API.

    Raises:
        StatusError: 400.

    Source: apiserver/pkg/endpoints/handlers/rest.go, transformDecodeError (1.36).
    """
    error = _find_metadata_error(body)
    if error:
        version = resource.group_version.rpartition("/")[2]
        raise new_bad_request(f'{resource.kind} in version "{version}" cannot be handled as a {resource.kind}: {error}')


def check_patched_metadata(body: Object) -> None:
    """Reject a patched object whose metadata has a field of another type than that of the API.

    Raises:
        StatusError: 422.

    Source: apiserver/pkg/endpoints/handlers/patch.go, jsonPatcher.applyPatchToCurrentObject (1.36).
    """
    error = _find_metadata_error(body)
    if error:
        raise new_invalid_patch(error)


def _find_metadata_error(body: Object) -> str:
    """Return the error in the metadata of a body; empty if there is none."""
    try:
        from_builtins({"metadata": body.get("metadata")}, KubernetesObject)
    except DecodeError as error:
        return str(error)
    return ""


def check_names(namespace: str, name: str, meta: Object) -> None:
    """Reject a body whose name or namespace differs from the name or namespace in the path.

    Raises:
        StatusError: 400.
    """
    body_name = meta.get("name") or ""
    if name and body_name != name:
        raise new_bad_request(f"the name of the object ({body_name}) does not match the name on the URL ({name})")
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise new_bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_resource_version(resource: ApiResource, old: Object, new: Object) -> None:
    """Reject an update of an outdated version, or of an object that was deleted and recreated.

    Raises:
        StatusError: 409; 422 if a required version is missing.
    """
    meta = new.get("metadata") or {}
    name = old["metadata"]["name"]
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        raise make_precondition_error(resource, old, "UID", meta["uid"])
    version = meta.get("resourceVersion") or ""
    if not version and not resource.allow_unconditional_update:
        message = "Invalid value: 0: must be specified for an update"
        # Upstream's error names the plural here instead of the kind.
        # Source: apiserver/pkg/registry/generic/registry/store.go, Store.Update (1.36).
        resource_named_by_plural = replace(resource, kind=resource.plural)
        raise new_invalid(
            resource_named_by_plural, name, [StatusCause("metadata.resourceVersion", "FieldValueInvalid", message)]
        )
    if version and version != old["metadata"]["resourceVersion"]:
        raise new_object_modified(resource, name)


def make_precondition_error(
    resource: ApiResource, old: Object, field: str, expected_value: str, *, deleting: bool = False
) -> StatusError:
    """Return the error of a failed precondition. *field* is `UID` or `ResourceVersion`.

    The message for a deletion (*deleting*) differs from the message for an update.
    """
    meta = old["metadata"]
    actual = meta["uid" if field == "UID" else "resourceVersion"]
    if deleting:
        ending = "deleted and then recreated" if field == "UID" else "modified"
        message = f"the {field} in the precondition ({expected_value}) does not match the {field} in record ({actual})."
        resource_named_by_kind = replace(resource, plural=resource.kind)
        return new_conflict(resource_named_by_kind, meta["name"], f"{message} The object might have been {ending}")
    text = f"Precondition failed: {field} in precondition: {expected_value}, {field} in object meta: {actual}"
    key = "/".join(part for part in ("", "registry", resource.plural, meta.get("namespace", ""), meta["name"]) if part)
    storage_error = (
        f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
    )
    return new_conflict(resource, meta["name"], storage_error)


def check_preconditions(resource: ApiResource, old: Object, preconditions: Object, *, deleting: bool = False) -> None:
    """Reject the request if the object's `uid` or `resourceVersion` differs from the preconditions.

    Raises:
        StatusError: 409.
    """
    meta = old["metadata"]
    for label, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        if preconditions.get(field) and preconditions[field] != meta[field]:
            raise make_precondition_error(resource, old, label, preconditions[field], deleting=deleting)
