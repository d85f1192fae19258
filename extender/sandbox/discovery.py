"""What a client may ask of this server: its version, groups and kinds, and that it checks fields of what is written."""

from collections.abc import Mapping
from typing import Final

from extender.sandbox.served import PODS, SERVED, Object, Served

VERSION: Final = "v1.36.3"
"""The version of Kubernetes whose rules are followed."""

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_REVIEWS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "authentication.k8s.io/v1": (("TokenReview", "tokenreviews"),),
    "authorization.k8s.io/v1": (
        ("SubjectAccessReview", "subjectaccessreviews"),
        ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    ),
}
_PARTS: Final = (("binding", "v1", "Binding"), ("eviction", "policy/v1", "Eviction"))
_WHAT: Final = "x-kubernetes-group-version-kind"


def _versions() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for version in dict.fromkeys([*(kind.version for kind in SERVED), *_REVIEWS]):
        group = version.rpartition("/")[0]
        if group:
            groups.setdefault(group, []).append(version)
    return groups


_GROUPS: Final = _versions()


def document(path: str) -> Object | None:
    """The description found at a path; None if there is none."""
    match path.strip("/").split("/"):
        case ["version"]:
            major, minor, _ = VERSION.removeprefix("v").split(".")
            return {"major": major, "minor": minor, "gitVersion": VERSION, "platform": "linux/amd64"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in _GROUPS]}
        case ["api", "v1"]:
            return _resources("v1")
        case ["apis", group] if group in _GROUPS:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        case ["apis", group, number] if f"{group}/{number}" in _GROUPS.get(group, ()):
            return _resources(f"{group}/{number}")
        case ["openapi", "v3"]:
            return {"paths": {each: {"serverRelativeURL": f"/openapi/v3/{each}"} for each in map(_prefix, _all())}}
        case ["openapi", "v3", *rest] if "/".join(rest) in map(_prefix, _all()):
            return _openapi("/".join(rest[1:]))
        case _:
            return None


def _all() -> list[str]:
    return ["v1", *(version for versions in _GROUPS.values() for version in versions)]


def _prefix(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


def _group(name: str) -> Object:
    versions = [{"groupVersion": version, "version": version.rpartition("/")[2]} for version in _GROUPS[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resources(version: str) -> Object:
    found: list[Object] = []
    for kind in SERVED:
        if kind.version == version:
            found += _entries(kind)
    for kind_name, plural in _REVIEWS.get(version, ()):
        found.append({"name": plural, "singularName": "", "namespaced": False, "kind": kind_name, "verbs": ["create"]})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}


def _entries(kind: Served) -> list[Object]:
    shared: Object = {"singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
    whole: Object = {"name": kind.plural, **shared, "verbs": list(_VERBS)}
    if kind.short:
        whole["shortNames"] = list(kind.short)
    if kind.kind in {"Pod", "Service", "ReplicaSet", "StatefulSet", "ReplicationController"}:
        whole["categories"] = ["all"]
    found = [whole]
    part = {**shared, "singularName": ""}
    if kind.status:
        found.append({"name": f"{kind.plural}/status", **part, "verbs": ["get", "patch", "update"]})
    if kind is PODS:
        for name, version, what in _PARTS:
            group, _, number = version.rpartition("/")
            origin = {"group": group, "version": number, "kind": what}
            found.append({"name": f"pods/{name}", **part, **origin, "verbs": ["create"]})
    return found


def _openapi(version: str) -> Object:
    """Just enough for kubectl to see that fields of what it sends are checked by the server, so that it need not."""
    group, _, number = version.rpartition("/")
    parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
    paths: Object = {}
    for kind in SERVED:
        if kind.version == version:
            inside = "/namespaces/{namespace}" if kind.namespaced else ""
            what = {_WHAT: {"group": group, "version": number, "kind": kind.kind}, "parameters": parameters}
            paths[f"/{_prefix(version)}{inside}/{kind.plural}/{{name}}"] = {"patch": what}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION}, "paths": paths}
