"""Build the discovery documents: the version, the API groups and resources, and a minimal OpenAPI document."""

from typing import Final

from extender.fake_apiserver.registry.resources import API_RESOURCES, PODS, ApiResource, Object
from extender.fake_apiserver.registry.reviews import REVIEW_KINDS

VERSION: Final = "v1.37.2"
"""The Kubernetes version that this server implements."""

OPENAPI_V2_PROTOBUF: Final = b"\n\x032.0"
"""An OpenAPI v2 document with the field `swagger` alone: kubectl reads it before it applies a list of objects."""

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_POD_SUBRESOURCES: Final = (("binding", "v1", "Binding"), ("eviction", "policy/v1", "Eviction"))
_GVK_EXTENSION: Final = "x-kubernetes-group-version-kind"


def _collect_group_versions() -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    review_versions = (version for version, _ in REVIEW_KINDS)
    for version in dict.fromkeys([*(resource.group_version for resource in API_RESOURCES), *review_versions]):
        group = version.rpartition("/")[0]
        if group:
            groups.setdefault(group, []).append(version)
    return groups


_VERSIONS_BY_GROUP: Final = _collect_group_versions()


def find_discovery_document(path: str) -> Object | None:
    """Return the discovery document at *path*; None if there is none."""
    match path.strip("/").split("/"):
        case ["version"]:
            major, minor, _ = VERSION.removeprefix("v").split(".")
            return {"major": major, "minor": minor, "gitVersion": VERSION, "platform": "linux/amd64"}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [_make_group_document(name) for name in _VERSIONS_BY_GROUP],
            }
        case ["api", "v1"]:
            return _make_resource_list("v1")
        case ["apis", group] if group in _VERSIONS_BY_GROUP:
            return {"kind": "APIGroup", "apiVersion": "v1", **_make_group_document(group)}
        case ["apis", group, version] if f"{group}/{version}" in _VERSIONS_BY_GROUP.get(group, ()):
            return _make_resource_list(f"{group}/{version}")
        case ["openapi", "v3"]:
            return {
                "paths": {
                    name: {"serverRelativeURL": f"/openapi/v3/{name}"}
                    for name in map(_make_version_path, _list_versions())
                }
            }
        case ["openapi", "v3", *path_parts] if "/".join(path_parts) in map(_make_version_path, _list_versions()):
            return _make_openapi_document("/".join(path_parts[1:]))
        case _:
            return None


def _list_versions() -> list[str]:
    return ["v1", *(version for versions in _VERSIONS_BY_GROUP.values() for version in versions)]


def _make_version_path(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


def _make_group_document(name: str) -> Object:
    versions = [
        {"groupVersion": version, "version": version.rpartition("/")[2]} for version in _VERSIONS_BY_GROUP[name]
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _make_resource_list(group_version: str) -> Object:
    entries: list[Object] = []
    for resource in API_RESOURCES:
        if resource.group_version == group_version:
            entries += _make_resource_entries(resource)
    entries += (
        {"name": plural, "singularName": "", "namespaced": False, "kind": kind, "verbs": ["create"]}
        for (version, plural), kind in REVIEW_KINDS.items()
        if version == group_version
    )
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def _make_resource_entries(resource: ApiResource) -> list[Object]:
    shared_fields: Object = {
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
    }
    entry: Object = {"name": resource.plural, **shared_fields, "verbs": list(_VERBS)}
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.kind in {"Pod", "Service", "ReplicaSet", "StatefulSet", "ReplicationController"}:
        entry["categories"] = ["all"]
    entries = [entry]
    subresource_fields = {**shared_fields, "singularName": ""}
    if resource.has_status:
        entries.append({"name": f"{resource.plural}/status", **subresource_fields, "verbs": ["get", "patch", "update"]})
    if resource is PODS:
        for name, group_version, subresource_kind in _POD_SUBRESOURCES:
            group, _, version = group_version.rpartition("/")
            group_version_kind = {"group": group, "version": version, "kind": subresource_kind}
            entries.append({"name": f"pods/{name}", **subresource_fields, **group_version_kind, "verbs": ["create"]})
    return entries


def _make_openapi_document(group_version: str) -> Object:
    """Return the minimal OpenAPI document from which kubectl learns that the server validates fields."""
    group, _, version = group_version.rpartition("/")
    parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
    paths: Object = {}
    for resource in API_RESOURCES:
        if resource.group_version == group_version:
            namespace_path = "/namespaces/{namespace}" if resource.namespaced else ""
            operation = {
                _GVK_EXTENSION: {"group": group, "version": version, "kind": resource.kind},
                "parameters": parameters,
            }
            paths[f"/{_make_version_path(group_version)}{namespace_path}/{resource.plural}/{{name}}"] = {
                "patch": operation
            }
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION}, "paths": paths}
