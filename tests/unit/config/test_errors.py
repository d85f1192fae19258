"""Errors of a configuration, their field paths, and errors that follow from earlier ones."""

import pytest

from extender.config.errors import ConfigError, FieldError, child, drop_cascading_errors, is_within, item


def test_an_error_is_shown_as_path_and_message() -> None:
    assert str(FieldError("a[0].b", "wrong")) == "a[0].b: wrong"


def test_a_config_error_has_all_errors() -> None:
    errors = [FieldError("a", "first"), FieldError("", "second")]
    exception = ConfigError(iter(errors))
    assert exception.errors == tuple(errors)
    assert str(exception) == "a: first; second"


def test_paths_are_joined_with_dots_and_indices() -> None:
    assert child("", "profiles") == "profiles"
    assert child(item("profiles", 0), "plugins") == "profiles[0].plugins"


@pytest.mark.parametrize(
    ("path", "within"), [("a", True), ("a.b", True), ("a[0]", True), ("ab", False), ("b.a", False), ("", False)]
)
def test_a_path_is_within_itself_and_its_ancestors(path: str, within: bool) -> None:
    assert is_within(path, "a") is within


def test_errors_within_the_path_of_an_earlier_error_are_dropped() -> None:
    earlier = [FieldError("profiles[1]", "expected an object"), FieldError("", "not a field")]
    later = [FieldError(path, "Required value") for path in ("profiles[1].schedulerName", "profiles[10]", "profiles")]
    assert drop_cascading_errors(later, earlier) == later[1:]
