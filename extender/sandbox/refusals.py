"""What the server says when it does not do what was asked: the Status objects of the API, with its own words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from extender.sandbox.served import Object, Served


class RefusedError(Exception):
    """A request that is answered with a Status.

    Attributes:
        status: the answer.
        retry_after: seconds the caller is told to wait; None: nothing is said.
    """

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None, retry: int = 0) -> None:
        """Makes the Status; *retry* 0 leaves Retry-After away."""
        super().__init__(message)
        self.retry_after = retry or None
        self.status = status_of(code, reason, message, details)
        if retry:
            self.status.setdefault("details", {})["retryAfterSeconds"] = retry

    @property
    def code(self) -> int:
        """The HTTP status."""
        return int(self.status["code"])


@dataclass(frozen=True, slots=True)
class Wrong:
    """One fault in an object: the field, what kind of fault in the API's words, and the message."""

    field: str
    reason: str
    message: str


def status_of(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    """A Status that tells of a failure."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = details
    return {**status, "code": code}


def success(details: Object | None = None) -> Object:
    """A Status that tells of success."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": details} if details else status


def _details(kind: Served, name: str, **more: Any) -> Object:
    details: Object = {"name": name, "kind": kind.plural, **more}
    return {**details, "group": kind.group} if kind.group else details


def not_found(kind: Served, name: str) -> RefusedError:
    """404: there is no such object."""
    return RefusedError(404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name))


def no_such_path() -> RefusedError:
    """404: there is no such kind or part of one."""
    return RefusedError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Served, name: str) -> RefusedError:
    """409: the name is taken."""
    return RefusedError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _details(kind, name))


def conflict(kind: Served, name: str, why: str, part: str = "") -> RefusedError:
    """409: the object is not in the state the caller believes; *part* is a subresource such as `binding`."""
    resource = f"{kind.plural}/{part}" if part else kind.resource
    details = {**_details(kind, name), "kind": f"{kind.plural}/{part}" if part else kind.plural}
    return RefusedError(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {why}', details)


def modified(kind: Served, name: str) -> RefusedError:
    """409: someone else wrote the object meanwhile."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def forbidden(kind: Served, name: str, why: str) -> RefusedError:
    """403: admission does not let it in."""
    return RefusedError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', _details(kind, name))


def invalid(kind: Served, name: str, wrong: Iterable[Wrong]) -> RefusedError:
    """422: the object breaks a rule of its kind."""
    faults = list(wrong)
    texts = [f"{each.field}: {each.message}" for each in faults]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": each.reason, "message": each.message, "field": each.field} for each in faults]
    details = {"name": name, "kind": kind.kind, "causes": causes}
    if kind.group:
        details["group"] = kind.group
    return RefusedError(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {text}', details)


def invalid_options(field: str, message: str) -> RefusedError:
    """422: parameters of a list or watch that do not go together."""
    text = f'ListOptions.meta.k8s.io "" is invalid: {field}: {message}'
    causes = [{"reason": "FieldValueForbidden", "message": message, "field": field}]
    return RefusedError(422, "Invalid", text, {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes})


def bad_request(message: str) -> RefusedError:
    """400: the request cannot be understood."""
    return RefusedError(400, "BadRequest", message)


def unprocessable() -> RefusedError:
    """422: the request is understood and cannot be carried out."""
    return RefusedError(422, "Invalid", "the server rejected our request due to an error in our request")


def method_not_allowed() -> RefusedError:
    """405: the path has no such verb."""
    return RefusedError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media(known: Iterable[str] = ()) -> RefusedError:
    """415: the body is in a form that is not read here, but *known* are."""
    if not known:
        return RefusedError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    return RefusedError(415, "UnsupportedMediaType", text)


def not_acceptable() -> RefusedError:
    """406: the answer cannot be written as the caller wants it."""
    text = "only the following media types are accepted: application/json"
    return RefusedError(406, "NotAcceptable", text)


def expired(message: str) -> RefusedError:
    """410: the state asked for has been forgotten."""
    return RefusedError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> RefusedError:
    """410: a watch from a version that has been forgotten."""
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large(asked: int, current: int) -> RefusedError:
    """504: a version the server has not reached."""
    message = f"Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return RefusedError(504, "Timeout", message, {"causes": causes}, retry=1)


def too_many(message: str, cause: str, retry: int = 0) -> RefusedError:
    """429: a disruption budget forbids it now."""
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    return RefusedError(429, "TooManyRequests", message, details, retry)
