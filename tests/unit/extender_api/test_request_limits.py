"""Limits of requests: a value at the limit passes, one above it is rejected with the flag that sets it."""

import pytest

from extender.extender_api.request_limits import MAX_OBJECT_BYTES, RequestError, RequestLimits, check_raw_object

LIMITS = RequestLimits(max_names_bytes=10, max_bytes=20, max_nodes=3, max_victims=4)


def test_values_at_the_limits_pass() -> None:
    LIMITS.check_names(10, b'["a","b","c"]')
    LIMITS.check_nodes("Nodes", 3)
    LIMITS.check_victims("Victims", 4)
    LIMITS.check_victims_on_node("Victims", b"{" * 100_000)
    check_raw_object("Pod", b"x" * MAX_OBJECT_BYTES)
    check_raw_object("Pod", b"[%b]" % b",".join([b"{}"] * 20_000))
    check_raw_object("Pod", b"[%b]" % b",".join([b"0"] * 50_000))


def test_braces_and_commas_in_strings_are_not_counted() -> None:
    check_raw_object("Pod", rb'{"a\"":"%b","b":"\\"}' % (rb"{,\"\\" * 60_000))


def test_values_above_the_limits_are_rejected() -> None:
    checks = [
        (lambda: LIMITS.check_names(11, b"[]"), "a request with NodeNames may have at most 10 bytes; it has 11"),
        (lambda: LIMITS.check_names(1, b'["","","",""]'), "NodeNames: more than 3 nodes; --max-nodes sets the limit"),
        (lambda: LIMITS.check_nodes("Nodes", 4), "Nodes: more than 3 nodes; --max-nodes sets the limit"),
        (lambda: LIMITS.check_victims("V", 5), "V: more than 4 victims; --max-victims sets the limit"),
        (lambda: LIMITS.check_victims_on_node("V", b"{" * 100_001), "V: more than 100000 JSON objects on one node"),
        (lambda: check_raw_object("Pod", b"x" * (MAX_OBJECT_BYTES + 1)), "Pod: more than 3145728 bytes"),
        (lambda: check_raw_object("Pod", b"[%b]" % b",".join([b"{}"] * 20_001)), "Pod: more than 20000 JSON objects"),
        (
            lambda: check_raw_object("Pod", b"[%b]" % b",".join([b"0"] * 50_001)),
            "Pod: more than 50000 JSON fields and items",
        ),
        (
            lambda: check_raw_object("Pod", rb'{"\\":"\"","a":[%b]}' % b",".join([b"0"] * 50_001)),
            "Pod: more than 50000 JSON fields and items",
        ),
    ]
    for check, message in checks:
        with pytest.raises(RequestError) as caught:
            check()
        assert (caught.value.status, caught.value.message) == (413, message)
