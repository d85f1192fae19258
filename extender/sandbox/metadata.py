"""The metadata of objects: what the server writes there, and what a writer must know to be let through."""

import random
import re
import uuid
from dataclasses import replace
from datetime import datetime
from typing import Final

from extender.sandbox.refusals import RefusedError, Wrong, bad_request, conflict, invalid, modified
from extender.sandbox.served import Object, Served

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME: Final = 253
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_OURS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_WITH_GENERATION: Final = frozenset(
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
_SUBDOMAIN_FAULT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def seconds_of(text: str) -> float:
    """The time that metav1.Time or MicroTime writes, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def new_metadata(kind: Served, given: Object, now: str, chance: random.Random) -> Object:
    """The metadata of an object that is created.

    Args:
        kind: what it is.
        given: its metadata with the namespace decided.
        now: the time stamp.
        chance: draws the end of a generated name, and the UID.

    Raises:
        RefusedError: 422, there is no name, or one that is none.
    """
    name = given.get("name") or ""
    if not name and given.get("generateName"):
        name = given["generateName"] + "".join(chance.choices(_LETTERS, k=5))
    wrong = _wrong_name(name)
    if wrong is not None:
        raise invalid(kind, name, [wrong])
    kept = {key: value for key, value in given.items() if key not in {*_OURS, "resourceVersion", "selfLink"}}
    made = {"uid": str(uuid.UUID(int=chance.getrandbits(128), version=4)), "creationTimestamp": now}
    return {**kept, "name": name, **made, **({"generation": 1} if _counts(kind) else {})}


def _wrong_name(name: str) -> Wrong | None:
    if not name:
        return Wrong("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")
    if _NAME.fullmatch(name) is None or len(name) > _LONGEST_NAME:
        return Wrong("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_SUBDOMAIN_FAULT}')
    return None


def _counts(kind: Served) -> bool:
    """Whether the server counts the generations of the spec."""
    return kind.kind in _WITH_GENERATION


def metadata_after(kind: Served, old: Object, new: Object, *, spec_changed: bool) -> Object:
    """The metadata of an object that is changed: the caller's, but for what is the server's own."""
    before, wanted = old["metadata"], new.get("metadata") or {}
    after = {key: value for key, value in wanted.items() if key not in _OURS and value not in (None, {}, [])}
    ours = {key: before[key] for key in _OURS if key in before}
    if spec_changed and _counts(kind):
        ours["generation"] = int(before.get("generation", 1)) + 1
    names = {key: before[key] for key in ("name", "namespace", "generateName") if key in before}
    return {**after, **ours, **names, "resourceVersion": before["resourceVersion"]}


def check_names(namespace: str, name: str, meta: Object) -> None:
    """Refuse a body that is about another object than the path.

    Raises:
        RefusedError: 400.
    """
    given = meta.get("name") or ""
    if name and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_version(kind: Served, old: Object, new: Object) -> None:
    """Refuse an update of a state, or of an object, that is not there any more.

    Raises:
        RefusedError: 409; 422 where a version must be given and is not.
    """
    meta = new.get("metadata") or {}
    name = old["metadata"]["name"]
    if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        raise precondition(kind, old, "UID", meta["uid"])
    version = meta.get("resourceVersion") or ""
    if not version and not kind.unconditional:
        message = "Invalid value: 0: must be specified for an update"
        # Here the server names the resource where it names the kind elsewhere. Source: registry.Store.Update.
        plural = replace(kind, kind=kind.plural)
        raise invalid(plural, name, [Wrong("metadata.resourceVersion", "FieldValueInvalid", message)])
    if version and version != old["metadata"]["resourceVersion"]:
        raise modified(kind, name)


def precondition(kind: Served, old: Object, what: str, wanted: str, *, deleting: bool = False) -> RefusedError:
    """That an object is not the one meant: *what* is `UID` or `ResourceVersion`."""
    meta = old["metadata"]
    found = meta["uid" if what == "UID" else "resourceVersion"]
    if deleting:
        ending = "deleted and then recreated" if what == "UID" else "modified"
        why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found})."
        named = replace(kind, plural=kind.kind)
        return conflict(named, meta["name"], f"{why} The object might have been {ending}")
    text = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    key = "/".join(part for part in ("", "registry", kind.plural, meta.get("namespace", ""), meta["name"]) if part)
    stored = f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
    return conflict(kind, meta["name"], stored)


def check_preconditions(kind: Served, old: Object, wanted: Object, *, deleting: bool = False) -> None:
    """Refuse when the object is not the one, or not in the state, that *wanted* names by `uid` and `resourceVersion`.

    Raises:
        RefusedError: 409.
    """
    meta = old["metadata"]
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        if wanted.get(field) and wanted[field] != meta[field]:
            raise precondition(kind, old, what, wanted[field], deleting=deleting)
