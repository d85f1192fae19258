"""Make characters visible that a browser or a terminal would not show, or that would change the text around them.

Names, labels and expressions may have escape sequences, with which a terminal changes its state or hides text.
"""

from typing import Any


def make_visible(text: str) -> str:
    """Return *text* with each unprintable character, such as an escape or a right-to-left mark, as Python writes it.

    Line breaks and tabs are kept.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def make_value_visible(value: Any) -> Any:
    """Return plain values with `make_visible` applied to each string, also to the keys of dictionaries."""
    match value:
        case str():
            return make_visible(value)
        case dict():
            return {make_value_visible(key): make_value_visible(item) for key, item in value.items()}
        case list() | tuple():
            return [make_value_visible(item) for item in value]
    return value
