"""The log of invalid requests: its limit of lines, and the number of requests without a line."""

import pytest

from extender.serving.invalid_request_log import InvalidRequestLog


def test_lines_beyond_the_limit_are_counted_in_the_next_interval(caplog: pytest.LogCaptureFixture) -> None:
    log = InvalidRequestLog(max_lines=2, interval=1.0)
    for now in (5.0, 5.1, 5.2, 5.9, 6.0, 6.1):
        log.log(("192.0.2.1", 4711), "not an HTTP/1.1 request", now)
    assert [getattr(record, "omitted", 0) for record in caplog.records] == [0, 0, 2, 0]
    assert {record.__dict__["from"] for record in caplog.records} == {("192.0.2.1", 4711)}
