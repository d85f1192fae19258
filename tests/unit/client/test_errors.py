"""Failure responses become errors."""

import json
from typing import Any

import pytest

from extender.client import errors


@pytest.mark.parametrize(
    ("code", "body", "kind", "message"),
    [
        (401, {"reason": "Unauthorized", "message": "Unauthorized"}, errors.UnauthorizedError, "Unauthorized"),
        (403, {"reason": "Forbidden", "message": "pods is forbidden"}, errors.ForbiddenError, "pods is forbidden"),
        (404, {"reason": "NotFound", "message": "gone"}, errors.NotFoundError, "gone"),
        (409, {"reason": "Conflict", "message": "modified"}, errors.ConflictError, "modified"),
        (409, {"reason": "AlreadyExists", "message": "exists"}, errors.AlreadyExistsError, "exists"),
        (410, {"reason": "Expired", "message": "too old"}, errors.GoneError, "too old"),
        (410, {"reason": "Gone", "message": "gone"}, errors.GoneError, "gone"),
        (400, {"reason": "Expired", "message": "token"}, errors.GoneError, "token"),
        (429, {"reason": "TooManyRequests", "message": "slow down"}, errors.TooManyRequestsError, "slow down"),
        (500, {"reason": "InternalError", "message": "oops"}, errors.ServerError, "oops"),
        (503, b"<html>", errors.ServerError, "the server returned status 503: <html>"),
        (502, b"<html>\n <p>bad\r\n", errors.ServerError, "the server returned status 502: <html> <p>bad"),
        (504, b"", errors.ServerError, "the server returned status 504"),
        (422, {"reason": "Invalid", "message": "spec.x"}, errors.ApiError, "spec.x"),
        (302, b"", errors.ApiError, "the server returned status 302"),
        (
            504,
            {
                "reason": "Timeout",
                "message": "Too large resource version",
                "details": {"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1},
            },
            errors.GoneError,
            "Too large resource version",
        ),
    ],
    ids=[
        "unauthorized",
        "forbidden",
        "not found",
        "conflict",
        "already exists",
        "expired",
        "gone",
        "an expired token with another code",
        "too many requests",
        "internal error",
        "a page of a proxy",
        "a page with several lines",
        "nothing at all",
        "what nobody treats apart",
        "a redirect",
        "a version from the future",
    ],
)
def test_a_failure_response_becomes_its_error_class(code: int, body: Any, kind: type, message: str) -> None:
    error = errors.make_error_from_response(code, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert type(error) is kind
    assert (error.message, error.code) == (message, code)


def test_the_http_status_wins_over_the_body_s_code() -> None:
    assert type(errors.make_error_from_response(403, b'{"code": 404, "message": "x"}')) is errors.ForbiddenError


def test_a_message_of_more_than_16_kib_is_cut_because_it_is_logged() -> None:
    body = json.dumps({"message": "x" * 16_385}).encode()
    assert errors.make_error_from_response(503, body).message == "x" * 16_384 + "... (16385 characters)"
