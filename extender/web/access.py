"""A line in the log for each request to a verb: who asked what about which pod, and how it went."""

import logging
from typing import Any, Final

from starlette.types import Scope

from extender.web.callers import certificate_name
from extender.web.peer import EXTENSION

log = logging.getLogger("extender.access")

EVERY: Final = logging.INFO - 2
"""The level of requests that went well: written from `-v=2` on. Others always are."""


def told(scope: Scope, verb: str, code: int, seconds: float, facts: dict[str, Any]) -> None:
    """Log one request.

    Args:
        scope: of the request.
        verb: what was asked.
        code: the HTTP status of the answer.
        seconds: from the request's head to the answer.
        facts: what else is known: pod, bytes, error.
    """
    level = EVERY if code == 200 and not facts.get("err") else logging.INFO
    if not log.isEnabledFor(level):
        return
    certificate = scope.get("extensions", {}).get(EXTENSION)
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
            "user": certificate_name(certificate) if certificate else "",
            **facts,
        },
    )
