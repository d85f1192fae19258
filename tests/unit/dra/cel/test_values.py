"""Parsing of quantities, semantic versions, IP addresses, CIDRs and URLs."""

from collections.abc import Callable

import pytest

from extender.dra.cel import values
from extender.dra.cel.values import CelValue


@pytest.mark.parametrize(
    ("parse", "text", "want"),
    [
        (values.parse_quantity, "1500m", "1500000000"),
        (values.parse_quantity, "1Ki", "1024000000000"),
        (values.parse_semver, "1.2.3-alpha.1+build", "1.2.3-alpha.1"),
        (values.parse_ip_address, "2001:db8:0:0::1", "2001:db8::1"),
        (values.parse_cidr, "10.1.2.3/8", "10.1.2.3/8"),
        (values.parse_url, "/path?a=b", "/path?a=b"),
    ],
)
def test_a_value_has_a_canonical_text(parse: Callable[[str], CelValue], text: str, want: str) -> None:
    assert parse(text).text == want


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (values.parse_quantity, "many"),
        (values.parse_quantity, "1 "),
        (values.parse_semver, "1.02.3"),
        (values.parse_semver, "18446744073709551616.0.0"),
        (values.parse_ip_address, "fe80::1%eth0"),
        (values.parse_ip_address, "::ffff:10.0.0.1"),
        (values.parse_cidr, "10.0.0.0"),
        (values.parse_cidr, "10.0.0.0/33"),
        (values.parse_cidr, "10.0.0.0/08"),
        (values.parse_url, "example.com"),
        (values.parse_url, "https://example.com:port/"),
    ],
)
def test_an_invalid_text_is_an_error(parse: Callable[[str], CelValue], text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.parametrize(("text", "want"), [("v1.2", "1.2.0"), ("01.002.3-rc.1", "1.2.3-rc.1"), ("v0", "0.0.0")])
def test_a_version_can_be_normalized(text: str, want: str) -> None:
    assert values.parse_semver(text, normalize=True).text == want


def test_a_short_version_has_no_prerelease() -> None:
    with pytest.raises(ValueError, match="short version cannot contain"):
        values.parse_semver("1.2-alpha", normalize=True)


def test_versions_sort_by_number_and_pre_releases_first() -> None:
    versions = ["2.0.0", "1.10.0", "1.10.0-alpha.1", "1.10.0-alpha", "1.10.0-2", "1.10.0-1", "1.9.9"]
    assert sorted(versions, key=values.make_semver_sort_key) == [
        "1.9.9", "1.10.0-1", "1.10.0-2", "1.10.0-alpha", "1.10.0-alpha.1", "1.10.0", "2.0.0"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "want"), [("2000000000", 2), ("-1000000000", -1), ("1500000000", None), (f"{2**63}000000000", None)]
)
def test_a_whole_quantity_fits_in_an_int64(text: str, want: int | None) -> None:
    assert values.to_int64(text) == want
