"""Rendering of a converted configuration as short YAML, without default values."""

from collections.abc import Mapping

from extender.config.documents import dump_yaml, parse_document
from extender.config.model import Configuration
from extender.config.render import render_configuration

_RENDERED_KEYS = ("apiVersion", "kind", "profiles", "extenders")


def render_without_defaults(configuration: Configuration) -> str:
    """Render profiles and extenders as YAML. It loads to an equal configuration if other fields have their defaults."""
    document, errors = parse_document(render_configuration(configuration).encode(), "the configuration")
    if errors or not isinstance(document, Mapping):
        raise ValueError("; ".join(map(str, errors)) or "no object")
    return dump_yaml({key: _strip_defaults(document[key]) for key in _RENDERED_KEYS if key in document})


def _strip_defaults(value: object) -> object:
    """Return *value* without weights of 0 and without empty objects."""
    if isinstance(value, Mapping):
        stripped_fields = {key: _strip_defaults(field) for key, field in value.items()}
        return {
            key: field for key, field in stripped_fields.items() if field != {} and not (key == "weight" and field == 0)
        }
    if isinstance(value, list):
        return [_strip_defaults(element) for element in value]
    return value
