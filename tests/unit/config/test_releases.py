"""The releases that can be emulated, and the flag that selects one."""

import pytest

from extender.config.errors import ConfigError
from extender.config.releases import (
    RELEASE_1_36,
    RELEASE_1_37,
    RELEASES,
    find_release,
    is_version_of,
    parse_emulated_version,
)


@pytest.mark.parametrize(
    ("values", "version"),
    [
        ((), "1.37"),
        (("1.36",), "1.36"),
        (("v1.36",), "1.36"),
        (("kube=1.36",), "1.36"),
        (("1.36", "1.37"), "1.37"),
        (("kube=1.37,1.36",), "1.36"),
    ],
    ids=["the newest by default", "a minor", "with a v", "with the component", "the last value", "a list"],
)
def test_the_flag_selects_a_release(values: tuple[str, ...], version: str) -> None:
    assert parse_emulated_version(values).version == version


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1.35", "1.35 cannot be emulated; want 1.36 or 1.37"),
        ("1.36.3", "1.36.3 cannot be emulated; want 1.36 or 1.37"),
        ("", " cannot be emulated; want 1.36 or 1.37"),
        ("wardle=1.36", "component not registered: wardle; want kube=1.37"),
    ],
)
def test_a_release_that_cannot_be_emulated_is_one_error(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_emulated_version([value])
    assert list(map(str, caught.value.errors)) == [f"--emulated-version: {message}"]


def test_the_release_before_is_the_minor_before() -> None:
    assert [release.previous_version for release in RELEASES.values()] == ["1.35", "1.36"]


def test_the_release_of_a_full_version_is_found() -> None:
    assert find_release("v1.37.2-gke.100") is RELEASE_1_37
    assert find_release("1.37") is RELEASE_1_37
    assert find_release("v1.36.0") is RELEASE_1_36


def test_the_nearest_release_of_another_version_is_found() -> None:
    assert find_release("v1.3.7") is RELEASE_1_36
    assert find_release("v1.35.9") is RELEASE_1_36
    assert find_release("v1.40.0-alpha.1") is RELEASE_1_37
    assert find_release("v2.0.0") is RELEASE_1_37


@pytest.mark.parametrize("text", ["", "v1", "unknown", "v1.x.2", "v1.99999999999999999999"])
def test_a_text_without_a_minor_version_has_no_release(text: str) -> None:
    assert find_release(text) is None


@pytest.mark.parametrize(
    ("version", "expected"),
    [("v1.36.3", True), ("1.36", True), ("v1.36.0-gke.1", True), ("v1.35.9", False), ("v1.3.6", False), ("", False)],
)
def test_a_version_near_a_release_is_not_a_version_of_it(version: str, expected: bool) -> None:
    assert is_version_of(version, RELEASE_1_36) is expected
