"""Errors of a configuration."""

from extender.config.errors import ConfigError, FieldError


def test_an_error_is_shown_as_path_and_message():
    assert str(FieldError("a[0].b", "wrong")) == "a[0].b: wrong"


def test_a_config_error_has_all_errors() -> None:
    errors = [FieldError("a", "first"), FieldError("", "second")]
    exception = ConfigError(iter(errors))
    assert exception.errors == tuple(errors)
    assert str(exception) == "a: first; second"
