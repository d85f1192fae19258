"""Make characters visible that a browser or a terminal would not show, or that would change the text around them.

Names, labels and expressions may have escape sequences, with which a terminal changes its state or hides text.
"""

from typing import Any, Final

_GO_ESCAPES: Final = str.maketrans(
    {"\\": r"\\", '"': r"\"", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
)


def make_visible(text: str) -> str:
    """Return *text* with each unprintable character, such as an escape or a right-to-left mark, as Python writes it.

    Line breaks and tabs are kept.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
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


def quote(text: str) -> str:
    """Return *text* in double quotes, with escapes as Go's verb %q has them; the result is one line.

    Source: Go 1.26, strconv/quote.go, Quote.
    """
    text = text.translate(_GO_ESCAPES)
    return f'"{text if text.isprintable() else "".join(map(_escape_as_go, text))}"'


def _escape_as_go(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
