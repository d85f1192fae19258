"""What a request asks for: the verb and the object, read from method, path and query.

Source: apiserver's RequestInfoFactory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from extender.sandbox.refusals import bad_request, method_not_allowed, no_such_path
from extender.sandbox.served import BY_PATH, PODS, Served

_VERBS: Final[Mapping[tuple[str, bool], str]] = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
_POD_PARTS: Final = ("binding", "eviction")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request about objects.

    Attributes:
        verb: get, list, watch, create, update, patch, delete or deletecollection.
        kind: what is asked for.
        namespace: where; empty: everywhere, or the kind has none.
        name: which one; empty: all.
        part: the subresource; empty: the whole.
        query: the parameters.
    """

    verb: str
    kind: Served
    namespace: str
    name: str
    part: str
    query: Mapping[str, str]

    @property
    def resource(self) -> str:
        """The plural and, after a slash, the subresource, as roles name them."""
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be done."""
        return self.query.get("dryRun") == "All"

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number; None when absent.

        Raises:
            RefusedError: 400.
        """
        text = self.query.get(name, "")
        if not text:
            return None
        try:
            return int(text)
        except ValueError as fault:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from fault

    def yes(self, name: str) -> bool:
        """A parameter that is yes or no."""
        return self.query.get(name, "") in {"true", "1", "True", "TRUE", "t", "T"}


def read(method: str, path: str, query: Mapping[str, str]) -> Asked:
    """Reads a request.

    Args:
        method: of HTTP.
        path: still escaped.
        query: the parameters.

    Raises:
        RefusedError: 404, there is no such path; 405, it has no such verb.
    """
    match [unquote(part) for part in path.strip("/").split("/")]:
        case ["api", "v1", *rest]:
            version = "v1"
        case ["apis", group, number, *rest]:
            version = f"{group}/{number}"
        case _:
            raise no_such_path()
    kind, namespace, name, part = _object(version, rest)
    verb = _VERBS.get((method, bool(name)))
    if part in _POD_PARTS and method == "POST":
        verb = "create"
    if verb is None or (part in _POD_PARTS and verb != "create") or (part and not name):
        raise method_not_allowed()
    if verb == "list" and query.get("watch", "") in {"true", "1"}:
        verb = "watch"
    if verb == "create" and kind.namespaced and not namespace:
        raise method_not_allowed()
    return Asked(verb, kind, namespace, name, part, query)


def _object(version: str, rest: list[str]) -> tuple[Served, str, str, str]:
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and (len(rest) > 3 or (version, rest[2]) in BY_PATH):
        _, namespace, *rest = rest
    plural, name, part, *more = [*rest, "", "", ""][: max(3, len(rest))]
    kind = BY_PATH.get((version, plural))
    if kind is None or any(more) or (namespace and not kind.namespaced) or not _has(kind, part):
        raise no_such_path()
    if name and kind.namespaced and not namespace:
        raise no_such_path()
    return kind, namespace, name, part


def _has(kind: Served, part: str) -> bool:
    return not part or (part == "status" and kind.status) or (part in _POD_PARTS and kind is PODS)
