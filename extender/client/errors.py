"""The errors of requests to the API server.

    ApiError                  any error below, or another failure status
    ├── CredentialsError      no usable kubeconfig, token or certificate; an exec plugin that fails
    ├── UnreachableError      no response: connection refused, broken or timed out; see `maybe_sent`
    ├── FencedError           not sent: the caller's condition (such as holding the lease) was false
    ├── InvalidResponseError  a malformed or truncated response
    │   └── ResponseTooLargeError
    ├── UnauthorizedError     401, after the credentials were read again
    ├── ForbiddenError        403
    ├── NotFoundError         404
    ├── ConflictError         409: another client wrote first, or a precondition (uid) failed
    │   ├── AlreadyExistsError
    │   └── PodOnOtherNodeError
    ├── GoneError             410, or a resource version that the server does not have (yet): list again
    ├── TooManyRequestsError  429, after the retries that Retry-After allows
    └── ServerError           500 and above, after the same retries

An error has its own class only if a caller handles it differently. Other errors are a plain `ApiError` with the
server's message. Only `transport` retries requests; its callers decide whether to retry a whole operation.

A write may have been executed if it ends in `UnreachableError` with `maybe_sent`, or in `InvalidResponseError`. Its
outcome is unknown until the object is read again, so callers must not simply repeat it.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from extender.basics.input_limits import shorten

MAX_MESSAGE_LENGTH: Final = 16 * 1024
"""The limit of the characters of the server's message. A Status may have 16 MiB, and its message is logged."""


class _StatusCause(msgspec.Struct, frozen=True):
    """The field of a cause that is read. Source: apimachinery/pkg/apis/meta/v1/types.go, StatusCause (1.36)."""

    reason: str = ""


class _StatusDetails(msgspec.Struct, frozen=True):
    """The field of the details of a Status that is read."""

    causes: tuple[_StatusCause, ...] = ()


class ApiStatus(msgspec.Struct, frozen=True):
    """A metav1.Status: the body of a failure response, and the object of an ERROR event of a watch."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _StatusDetails | None = None


class ApiError(Exception):
    """A request failed.

    Attributes:
        message: the server's message if there was a response.
        code: the HTTP status; 0 if there was no response.
        reason: the Status's reason, such as `AlreadyExists`; may be empty.
        retry_after: the seconds after which the server asks to repeat a watch; None: it does not ask for that.
    """

    retry_after: float | None = None

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason


class CredentialsError(ApiError):
    """There are no usable credentials; the message names the file or plugin."""


class UnreachableError(ApiError):
    """There was no response.

    Attributes:
        maybe_sent: whether the request may have reached the server, and may have been executed.
        connection_broken: whether a connection broke; an idempotent request may be repeated at once.
        connect_error: why there is no connection, without the address of the server; empty if there was one.
    """

    def __init__(
        self, message: str, *, maybe_sent: bool, connection_broken: bool = False, connect_error: str = ""
    ) -> None:
        super().__init__(message)
        self.maybe_sent = maybe_sent
        self.connection_broken = connection_broken
        self.connect_error = connect_error


class FencedError(ApiError):
    """The request was not sent, because the caller's condition was false."""


class InvalidResponseError(ApiError):
    """The response is malformed or truncated."""


class ResponseTooLargeError(InvalidResponseError):
    """The response has more bytes than the limit of its request."""


class UnauthorizedError(ApiError):
    """401."""


class ForbiddenError(ApiError):
    """403."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409."""


class AlreadyExistsError(ConflictError):
    """409 on a create: the name is taken."""


class PodOnOtherNodeError(ConflictError):
    """A binding of a pod that another scheduler bound to another node."""


class GoneError(ApiError):
    """The resource version is not available: compacted, or newer than the server's (a restored etcd)."""


class TooManyRequestsError(ApiError):
    """429."""


class ServerError(ApiError):
    """500 and above."""


_CLASSES_BY_CODE: Final[Mapping[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: TooManyRequestsError,
}


def _select_error_class(status: ApiStatus) -> type[ApiError]:
    causes = status.details.causes if status.details else ()
    if status.reason == "Expired" or any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
        return GoneError
    if status.reason == "AlreadyExists":
        return AlreadyExistsError
    return _CLASSES_BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)


def make_error_from_status(status: ApiStatus) -> ApiError:
    """Return the error of a Status."""
    message = status.message or status.reason or f"the server returned status {status.code}"
    message = shorten(message, MAX_MESSAGE_LENGTH)
    return _select_error_class(status)(message, status.code, status.reason)


def make_error_from_response(code: int, body: bytes) -> ApiError:
    """Return the error of a failure response.

    *code* is 400 or above. *body* is a Status in JSON; any other body, such as a proxy's page, is quoted in part, in
    one line.
    """
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        text = " ".join(body[:200].decode(errors="replace").split())
        status = ApiStatus(message=f"the server returned status {code}" + (f": {text}" if text else ""))
    return make_error_from_status(msgspec.structs.replace(status, code=code))
