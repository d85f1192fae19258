"""What a function of expressions is: its name, its types, and what it does.

Source: B123.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from extender.cel.values import Kept

KEPT: Final = "kept"
"""The type of parameters and results that are `Kept`; other types go by their CEL name, `list` and `dyn` included."""


class Function(NamedTuple):
    """A function or method with one list of parameter types.

    Attributes:
        name: in expressions.
        result: its type.
        parameters: their types, the receiver of a method first.
        method: it is called on its first argument.
        body: gets `Kept` for values of that type; raises ValueError for what an expression must not ask.
    """

    name: str
    result: str
    parameters: tuple[str, ...]
    method: bool
    body: Callable[..., Any]


def of(kind: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """*body* for values of one kind, given their texts."""

    def checked(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, Kept) and argument.kind != kind:
                raise ValueError("no such overload")
        return body(*(argument.text if isinstance(argument, Kept) else argument for argument in arguments))

    return checked
