"""Rendering of a converted configuration as short YAML, without default values."""

from collections.abc import Mapping

from extender.config.documents import dump_yaml, parse_document
from extender.config.model import Configuration
from extender.config.render import render_configuration

_RENDERED_KEYS = ("apiVersion", "kind", "profiles", "extenders")


def render_without_defaults(configuration: Configuration) -> str:
    """Render the profiles and extenders of *configuration* as YAML.

    The YAML loads to an equal configuration if all other fields of *configuration* have their defaults.
    """
    document, errors = parse_document(render_configuration(configuration).encode(), "the configuration")
    if errors or not isinstance(document, Mapping):
        raise ValueError("; ".join(map(str, errors)) or "no object")
    return dump_yaml({key: _strip_defaults(document[key]) for key in _RENDERED_KEYS if key in document})


def _strip_defaults(value: object) -> object:
    """Return *value* without empty objects and without weights of 0."""
    if isinstance(value, Mapping):
        stripped_fields = {key: _strip_defaults(field) for key, field in value.items()}
        return {
            key: field for key, field in stripped_fields.items() if field != {} and not (key == "weight" and field == 0)
        }
    if isinstance(value, list):
        return [_strip_defaults(element) for element in value]
    return value
