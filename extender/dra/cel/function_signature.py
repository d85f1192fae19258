"""The signature and implementation of a CEL function.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from extender.dra.cel.values import CelValue

CEL_VALUE: Final = "value"
"""The type name of `CelValue` parameters and results. Other types have their CEL names, such as `list(dyn)`."""


class Function(NamedTuple):
    """A function or method with one list of parameter types.

    Attributes:
        name: the name in expressions.
        result: the result type.
        parameters: the types of the parameters; the first is a method's receiver.
        is_method: whether the function is a method of its first argument.
        body: the implementation; raises ValueError for invalid arguments.
    """

    name: str
    result: str
    parameters: tuple[str, ...]
    is_method: bool
    body: Callable[..., Any]


def check_kind(kind: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """Adapt *body*, a function of texts, to values of one kind. Values of other kinds raise ValueError."""

    def check_and_call(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, CelValue) and argument.kind != kind:
                raise ValueError("no such overload")
        return body(*(argument.text if isinstance(argument, CelValue) else argument for argument in arguments))

    return check_and_call
