"""What can go wrong between us and the API server.

    ApiError                  the server said no in a way nobody treats apart, or any of the below
    ├── CredentialsError      no usable kubeconfig, token, certificate; an exec plugin that fails
    ├── UnreachableError      no answer: refused, cut off, timed out; `sent`: it may have been carried out
    ├── FencedError           not sent: the caller's condition (holding the lease) no longer held
    ├── AnswerError           an answer that is not what the API promises: cut short, malformed
    ├── UnauthorizedError     401, after the credentials were read again
    ├── ForbiddenError        403
    ├── NotFoundError         404
    ├── ConflictError         409: someone else wrote first, or a precondition (uid) does not hold
    │   └── AlreadyExistsError
    ├── GoneError             410, or a version the server does not have (yet): list again
    ├── TooManyRequestsError  429, after the tries that Retry-After allows
    └── ServerError           500 and above, after the same

Policy. There is a class only for what some caller treats differently; the rest is a plain `ApiError` with the server's
words. Requests are repeated in one place only, `transport`; whoever gets one of these decides whether the whole
undertaking is worth another try. A write that ends in `UnreachableError` with `sent`, or in `AnswerError`, may have
been carried out: its outcome is unknown until the object has been seen again, so it is never simply repeated elsewhere.
"""

from collections.abc import Mapping
from typing import Final

import msgspec


class Cause(msgspec.Struct, frozen=True):
    """One cause of a failure, as the server lists them."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a failure was about; `retry_after_seconds` is 0 where the server names no time."""

    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """A metav1.Status: the body of an answer that says no, and the object of an ERROR event of a watch."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        message: in the server's words where it answered.
        code: the HTTP status; 0 where there was no answer.
        reason: the server's word for the kind of failure, such as `AlreadyExists`; may be empty.
        causes: what the server lists beside it.
    """

    def __init__(self, message: str, code: int = 0, reason: str = "", causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = causes


class CredentialsError(ApiError):
    """There is nothing to identify with; the message says where to look."""


class UnreachableError(ApiError):
    """No answer came.

    Attributes:
        sent: the request may have reached the server, and may have been carried out.
        broken: there was a connection, and it broke; what can safely be asked again may be, at once.
    """

    def __init__(self, message: str, *, sent: bool, broken: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.broken = broken


class FencedError(ApiError):
    """Not sent: what the caller made a condition no longer held when the request's turn came."""


class AnswerError(ApiError):
    """An answer that is not what the API promises."""


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


class GoneError(ApiError):
    """The version asked for is not to be had: compacted away, or newer than all the server knows (a restored etcd)."""


class TooManyRequestsError(ApiError):
    """429."""


class ServerError(ApiError):
    """500 and above."""


_BY_CODE: Final[Mapping[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: TooManyRequestsError,
}


def _kind_of(status: Status) -> type[ApiError]:
    causes = status.details.causes if status.details else ()
    if status.reason == "Expired" or any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
        return GoneError
    if status.reason == "AlreadyExists":
        return AlreadyExistsError
    return _BY_CODE.get(status.code, ServerError if status.code >= 500 else ApiError)


def of_status(status: Status) -> ApiError:
    """The error a Status stands for."""
    causes = status.details.causes if status.details else ()
    message = status.message or status.reason or f"the server answered with status {status.code}"
    return _kind_of(status)(message, status.code, status.reason, causes)


def of_answer(code: int, body: bytes) -> ApiError:
    """The error an answer stands for.

    Args:
        code: the HTTP status, 400 or above.
        body: a Status in JSON; anything else (a proxy's page) is quoted in part.
    """
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        text = body[:200].decode(errors="replace").strip()
        status = Status(message=f"the server answered with status {code}" + (f": {text}" if text else ""))
    return of_status(msgspec.structs.replace(status, code=code))
