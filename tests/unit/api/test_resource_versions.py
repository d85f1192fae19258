"""The order of resource versions."""

import pytest

from extender.api.resource_versions import make_version_key


@pytest.mark.parametrize(("older", "newer"), [("9", "10"), ("10", "11"), ("10", "9" * 5000)])
def test_a_newer_version_has_a_greater_key(older: str, newer: str) -> None:
    older_key, newer_key = make_version_key(older), make_version_key(newer)
    assert older_key is not None
    assert newer_key is not None
    assert older_key < newer_key


@pytest.mark.parametrize("version", ["", "a1", "-1", "1.0", "\u0663"])
def test_a_version_that_is_not_a_whole_number_has_no_key(version: str) -> None:
    assert make_version_key(version) is None
