"""The access log: level and fields."""

import logging
from typing import Any

import pytest

from extender.extender_api.endpoint import SUCCESS_LEVEL, log_request

SCOPE = {"path": "/filter", "client": ("10.0.0.1", 4711)}


@pytest.mark.parametrize(
    ("code", "fields", "level"),
    [(200, {}, SUCCESS_LEVEL), (200, {"err": "no"}, logging.INFO), (400, {}, logging.INFO)],
    ids=["a success", "an error in the result", "a failure status"],
)
def test_only_successes_have_the_lower_level(
    caplog: pytest.LogCaptureFixture, code: int, fields: dict[str, Any], level: int
) -> None:
    with caplog.at_level(1, "extender.access"):
        log_request(dict(SCOPE), "filter", code, 0.0125, fields)
    (record,) = caplog.records
    assert (record.levelno, record.__dict__["code"], record.__dict__["verb"]) == (level, code, "filter")
    assert (record.__dict__["from"], record.__dict__["user"]) == ("10.0.0.1:4711", "")
    assert record.__dict__["milliseconds"] == 12.5


def test_a_disabled_level_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "extender.access"):
        log_request(dict(SCOPE), "filter", 200, 0.0, {})
    assert caplog.records == []
