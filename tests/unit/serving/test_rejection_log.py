"""The log of rejected requests: its limit of lines, and the number of requests without a line."""

import pytest

from extender.serving.rejection_log import RejectionLog, format_client


def test_lines_beyond_the_limit_are_counted_in_the_next_interval(caplog: pytest.LogCaptureFixture) -> None:
    log = RejectionLog("Rejected", max_lines=2, interval=1.0)
    for now in (5.0, 5.1, 5.2, 5.9, 6.0, 6.1):
        log.log({"from": "192.0.2.1:4711", "err": "not an HTTP/1.1 request"}, now)
    assert [getattr(record, "omitted", 0) for record in caplog.records] == [0, 0, 2, 0]
    assert {record.__dict__["from"] for record in caplog.records} == {"192.0.2.1:4711"}
    assert {record.getMessage() for record in caplog.records} == {"Rejected"}


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("192.0.2.1", 4711), "192.0.2.1:4711"),
        (("2001:db8::1", 4711, 0, 0), "[2001:db8::1]:4711"),
        (("::ffff:192.0.2.1", 4711, 0, 0), "192.0.2.1:4711"),
        (None, ""),
    ],
    ids=["IPv4", "IPv6", "IPv4 of a socket for both", "none"],
)
def test_a_client_is_logged_as_host_and_port(address: tuple[object, ...] | None, text: str) -> None:
    assert format_client(address) == text
