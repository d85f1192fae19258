"""Create the API's errors as Status objects, with upstream's messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from extender.fake_apiserver.registry.resources import ApiResource, Object


class StatusError(Exception):
    """A request failed. The response is a Status.

    Attributes:
        retry_after: seconds for the Retry-After header; None: no header.
    """

    def __init__(
        self, code: int, reason: str, message: str, details: Object | None = None, retry_after: int = 0
    ) -> None:
        """Create the Status. If *retry_after* is 0, the response has no header Retry-After."""
        super().__init__(message)
        self.retry_after = retry_after or None
        self.status = make_failure_status(code, reason, message, details)
        if retry_after:
            self.status.setdefault("details", {})["retryAfterSeconds"] = retry_after

    @property
    def code(self) -> int:
        """The HTTP status."""
        return int(self.status["code"])


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One validation error of an object: the field, the reason, and the message."""

    field: str
    reason: str
    message: str


def make_failure_status(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    """Return a Status of a failure."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = details
    return {**status, "code": code}


def make_success_status(details: Object | None = None) -> Object:
    """Return a Status of success."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return {**status, "details": details} if details else status


def _make_details(resource: ApiResource, name: str, **details_fields: Any) -> Object:
    details: Object = {"name": name, "kind": resource.plural, **details_fields}
    return {**details, "group": resource.group} if resource.group else details


def new_not_found(resource: ApiResource, name: str) -> StatusError:
    """Return a 404 error: the object does not exist."""
    return StatusError(
        404, "NotFound", f'{resource.qualified_resource} "{name}" not found', _make_details(resource, name)
    )


def new_path_not_found() -> StatusError:
    """Return a 404 error: the resource or subresource does not exist."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def new_already_exists(resource: ApiResource, name: str) -> StatusError:
    """Return a 409 error: the name is in use."""
    return StatusError(
        409, "AlreadyExists", f'{resource.qualified_resource} "{name}" already exists', _make_details(resource, name)
    )


def new_conflict(resource: ApiResource, name: str, message: str, subresource: str = "") -> StatusError:
    """Return a 409 error: the object is not in the state that the request needs.

    *subresource* is the subresource of the request, such as `binding`, or empty.
    """
    path = f"{resource.plural}/{subresource}"
    details = {**_make_details(resource, name), "kind": path if subresource else resource.plural}
    target = path if subresource else resource.qualified_resource
    return StatusError(409, "Conflict", f'Operation cannot be fulfilled on {target} "{name}": {message}', details)


def new_object_modified(resource: ApiResource, name: str) -> StatusError:
    """Return a 409 error: the object was modified concurrently."""
    message = "the object has been modified; please apply your changes to the latest version and try again"
    return new_conflict(resource, name, message)


def new_forbidden(resource: ApiResource, name: str, message: str) -> StatusError:
    """Return a 403 error: admission rejects the object."""
    return StatusError(
        403,
        "Forbidden",
        f'{resource.qualified_resource} "{name}" is forbidden: {message}',
        _make_details(resource, name),
    )


def new_invalid(resource: ApiResource, name: str, causes: Iterable[StatusCause]) -> StatusError:
    """Return a 422 error: the object is invalid."""
    causes = list(causes)
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    cause_objects = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    details = {"name": name, "kind": resource.kind, "causes": cause_objects}
    if resource.group:
        details["group"] = resource.group
    return StatusError(422, "Invalid", f'{resource.qualified_kind} "{name}" is invalid: {text}', details)


def new_invalid_patch(error: str) -> StatusError:
    """Return a 422 error: the patched object cannot be decoded."""
    message = f"Invalid value: {error}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})


def new_invalid_options(message: str) -> StatusError:
    """Return a 422 error: the parameter `resourceVersionMatch` of a list or watch contradicts other parameters."""
    text = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {message}'
    causes = [{"reason": "FieldValueForbidden", "message": message, "field": "resourceVersionMatch"}]
    return StatusError(422, "Invalid", text, {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes})


def new_bad_request(message: str) -> StatusError:
    """Return a 400 error: the request is malformed."""
    return StatusError(400, "BadRequest", message)


def new_unprocessable() -> StatusError:
    """Return a 422 error: the patch cannot be applied."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request")


def new_method_not_allowed() -> StatusError:
    """Return a 405 error: the path does not support the verb."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def new_unsupported_media(supported_types: Iterable[str] = ()) -> StatusError:
    """Return a 415 error: the body's media type is not one of *supported_types*.

    kubectl sends protobuf in some commands, such as `create namespace`, and shows the text.
    """
    if not supported_types:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    text = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported_types)}"
        "; use kubectl apply, or add --dry-run=client --output=yaml | kubectl apply --filename=- to the command"
    )
    return StatusError(415, "UnsupportedMediaType", text)


def new_not_acceptable() -> StatusError:
    """Return a 406 error: none of the accepted media types is supported."""
    text = "only the following media types are accepted: application/json"
    return StatusError(406, "NotAcceptable", text)


def new_expired(message: str) -> StatusError:
    """Return a 410 error: the requested state is no longer available."""
    return StatusError(410, "Expired", message)


def new_too_old_resource_version(requested_version: int, oldest_version: int) -> StatusError:
    """Return a 410 error: the changes since the requested resource version are no longer stored."""
    return new_expired(f"too old resource version: {requested_version} ({oldest_version})")


def new_too_large_resource_version(requested_version: int, current_version: int) -> StatusError:
    """Return a 504 error: the requested resource version is in the future."""
    message = f"Too large resource version: {requested_version}, current: {current_version}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, {"causes": causes}, retry_after=1)


def new_too_many_requests(cause: str, retry_after: int = 0) -> StatusError:
    """Return a 429 error: a disruption budget currently forbids the eviction."""
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    return StatusError(429, "TooManyRequests", message, details, retry_after)
