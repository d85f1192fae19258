"""Errors of the applications: one line of plain text with the status."""

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from extender.serving.error_handlers import EXCEPTION_HANDLERS, make_text_response


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (HTTPException(413, "a request is\ntoo big", {"Retry-After": "1"}), 413, "a request is too big\n"),
        (LookupError("a secret"), 500, "internal error: LookupError\n"),
    ],
    ids=["an HTTP error", "an unexpected exception"],
)
def test_an_error_is_one_line_of_plain_text(error: Exception, status: int, text: str) -> None:
    app = FastAPI(exception_handlers=EXCEPTION_HANDLERS)

    @app.get("/")
    async def fail() -> None:
        raise error

    response = TestClient(app, raise_server_exceptions=False).get("/")
    assert (response.status_code, response.text) == (status, text)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers.get("retry-after") == ("1" if status == 413 else None)


def test_line_breaks_of_a_text_become_spaces() -> None:
    assert make_text_response("a\n b\tc", 200).body == b"a b c\n"
