"""The access log: one line for each request to a verb, with caller, pod and status code."""

import logging
from typing import Any, Final

from starlette.types import Scope

from extender.serving.authentication import get_first_certificate_name
from extender.serving.http_protocol import CERTIFICATE_EXTENSION

log = logging.getLogger("extender.access")

SUCCESS_LEVEL: Final = logging.INFO - 2
"""Log level of successful requests, which are logged with `-v=2` or higher. Failed requests are always logged."""


def log_request(scope: Scope, verb: str, code: int, seconds: float, fields: dict[str, Any]) -> None:
    """Log one request.

    *seconds* count from the request's headers to the end of the response. *fields* are further log fields: pod, body
    sizes, error.
    """
    level = SUCCESS_LEVEL if code == 200 and not fields.get("err") else logging.INFO
    if not log.isEnabledFor(level):
        return
    certificate = scope.get("extensions", {}).get(CERTIFICATE_EXTENSION)
    client = scope.get("client")
    log.log(
        level,
        "request",
        extra={
            "verb": verb,
            "path": scope["path"],
            "code": code,
            "milliseconds": round(seconds * 1000, 3),
            "from": f"{client[0]}:{client[1]}" if client else "",
            "user": get_first_certificate_name(certificate) if certificate else "",
            **fields,
        },
    )
