"""Parse the verb, the resource and the object of a request from its method, path and query.

Source: apiserver/pkg/endpoints/request/requestinfo.go, RequestInfoFactory.NewRequestInfo (1.36).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from extender.fake_apiserver.registry.api_errors import new_bad_request, new_method_not_allowed, new_path_not_found
from extender.fake_apiserver.registry.resources import PODS, RESOURCES_BY_PATH, ApiResource

_VERBS: Final[Mapping[tuple[str, bool], str]] = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
_POD_SUBRESOURCES: Final = ("binding", "eviction")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The verb of a request, and the object or objects that it addresses.

    Attributes:
        verb: the verb (get, list, watch, create, update, patch, delete or deletecollection).
        namespace: the namespace; empty for all namespaces, or if the resource is cluster-scoped.
        name: the name of the object; empty for all objects.
        subresource: the subresource; empty for the object itself.
    """

    verb: str
    resource: ApiResource
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]

    @property
    def resource_path(self) -> str:
        """The plural with the subresource, such as `pods` or `pods/binding`, as in RBAC roles."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    @property
    def dry_run(self) -> bool:
        """Whether the request is a dry run, which stores nothing."""
        return self.query.get("dryRun") == "All"

    def parse_int_param(self, name: str) -> int | None:
        """Return an integer parameter of the query; None if it is absent.

        Raises:
            StatusError: 400 if the parameter is not an integer.
        """
        text = self.query.get(name, "")
        if not text:
            return None
        try:
            return int(text)
        except ValueError as error:
            raise new_bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error

    def parse_bool_param(self, name: str) -> bool:
        """Return a boolean parameter of the query; false if it is absent."""
        return self.query.get(name, "") in {"true", "1", "True", "TRUE", "t", "T"}


def parse_request(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """Parse a request; *path* is percent-encoded.

    Raises:
        StatusError: 404 for an unknown path; 405 for an unsupported verb.
    """
    match [unquote(segment) for segment in path.strip("/").split("/")]:
        case ["api", "v1", *path_parts]:
            group_version = "v1"
        case ["apis", group, version, *path_parts]:
            group_version = f"{group}/{version}"
        case _:
            raise new_path_not_found()
    resource, namespace, name, subresource = _parse_resource_path(group_version, path_parts)
    verb = _VERBS.get((method, bool(name)))
    if subresource in _POD_SUBRESOURCES and method == "POST":
        verb = "create"
    if verb is None or (subresource in _POD_SUBRESOURCES and verb != "create") or (subresource and not name):
        raise new_method_not_allowed()
    if verb == "list" and query.get("watch", "") in {"true", "1"}:
        verb = "watch"
    if verb == "create" and resource.namespaced and not namespace:
        raise new_method_not_allowed()
    return RequestInfo(verb, resource, namespace, name, subresource, query)


def _parse_resource_path(group_version: str, path_parts: list[str]) -> tuple[ApiResource, str, str, str]:
    namespace = ""
    if (
        len(path_parts) >= 3
        and path_parts[0] == "namespaces"
        and (len(path_parts) > 3 or (group_version, path_parts[2]) in RESOURCES_BY_PATH)
    ):
        _, namespace, *path_parts = path_parts
    plural, name, subresource, *extra_parts = [*path_parts, "", "", ""][: max(3, len(path_parts))]
    resource = RESOURCES_BY_PATH.get((group_version, plural))
    if (
        resource is None
        or any(extra_parts)
        or (namespace and not resource.namespaced)
        or not _has_subresource(resource, subresource)
    ):
        raise new_path_not_found()
    if name and resource.namespaced and not namespace:
        raise new_path_not_found()
    return resource, namespace, name, subresource


def _has_subresource(resource: ApiResource, subresource: str) -> bool:
    return (
        not subresource
        or (subresource == "status" and resource.has_status)
        or (subresource in _POD_SUBRESOURCES and resource is PODS)
    )
