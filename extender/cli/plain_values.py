"""Convert plain values of the command line without pydantic: texts, booleans, integers, enums and lists of these.

Typer imports pydantic when it converts its first value, and this import takes a tenth of a second. Typer still converts
all other values, such as invalid values and numbers with limits, so that its messages stay the same.
"""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Self, get_args, get_origin

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_UNCONVERTED: Final = object()


class PlainValueConverter:
    """Converts the values of one parameter, in place of Typer's converter.

    Args:
        make_converter: returns Typer's converter, which converts the values that are not plain.
    """

    def __init__(self, make_converter: Callable[[], Any]) -> None:
        self._make_converter = make_converter

    def get(self) -> Self:
        """Return the converter, as the method of a parameter that it replaces does."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert *value* to the type of the parameter. *value* is a text of the command line, or a default.

        Raises:
            BadParameter: the value is invalid.
        """
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        descriptor = param.type_descriptor
        settings = descriptor.parameter_info
        has_limits = settings.min is not None or settings.max is not None
        plain = not has_limits and settings.parser is None and descriptor.file_annotation is None
        converted_value = _convert(value, descriptor.annotation) if plain else _UNCONVERTED
        return self._make_converter().coerce(value, param, ctx) if converted_value is _UNCONVERTED else converted_value


def set_plain_converters(command: Any) -> None:
    """Set a `PlainValueConverter` for each parameter of *command*, `--help` included, and of its subcommands."""
    get_params = command.get_params

    def get_plain_params(ctx: Any) -> list[Any]:
        params: list[Any] = get_params(ctx)
        for param in params:
            make_converter = getattr(param, "get_runtime_param", None)
            has_type = hasattr(param, "type_descriptor")  # other versions of Typer have neither
            is_set = isinstance(getattr(make_converter, "__self__", None), PlainValueConverter)
            if make_converter is not None and has_type and not is_set:
                param.get_runtime_param = PlainValueConverter(make_converter).get
        return params

    command.get_params = get_plain_params
    for subcommand in getattr(command, "commands", {}).values():
        set_plain_converters(subcommand)


def _convert(value: Any, annotation: Any) -> Any:
    """Return *value* with the type *annotation*; `_UNCONVERTED` if the conversion is not plain."""
    if annotation is str or annotation is bool:
        return value if type(value) is annotation else _UNCONVERTED
    if annotation is int:
        is_plain = type(value) is int or (type(value) is str and _WHOLE_NUMBER.fullmatch(value))
        return int(value) if is_plain else _UNCONVERTED
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next((member for member in annotation if value is member or value == member.value), _UNCONVERTED)
    if get_origin(annotation) is list and type(value) in (list, tuple):
        (item_type,) = get_args(annotation)
        items = [_convert(item, item_type) for item in value]
        return _UNCONVERTED if _UNCONVERTED in items else items
    return _UNCONVERTED
