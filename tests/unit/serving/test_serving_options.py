"""Which serving addresses are loopback addresses."""

import pytest

from extender.serving.serving_options import ServingOptions


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],  # noqa: S104
)
def test_loopback_addresses_are_detected(address: str, is_loopback: bool) -> None:
    assert ServingOptions(address=address).is_loopback is is_loopback


def test_a_host_name_is_no_loopback_address() -> None:
    assert ServingOptions(address="host.example").is_loopback is False
