"""The responses to errors: one line of plain text with the status."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse


def make_text_response(text: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return a plain-text response of one line; line breaks in *text* become spaces."""
    one_line = " ".join(text.split())
    return PlainTextResponse(f"{one_line}\n", status, headers)


async def _handle_http_exception(_: Request, error: HTTPException) -> Response:
    return make_text_response(str(error.detail), error.status_code, error.headers)


async def _handle_exception(_: Request, error: Exception) -> Response:
    """Return status 500. The traceback is only in uvicorn's log."""
    return make_text_response(f"internal error: {type(error).__name__}", 500)


EXCEPTION_HANDLERS: Final[dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]]] = {
    HTTPException: _handle_http_exception,
    Exception: _handle_exception,
}
"""The exception handlers of the applications, for FastAPI's argument `exception_handlers`."""
