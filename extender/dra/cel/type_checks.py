"""Type checks of Kubernetes that the library lacks: of elements in lists and maps, and of arguments of list functions.

All elements of a list have the same type, as all keys and all values of a map do. The list functions are generic in
Kubernetes: `sets.contains` of a list of numbers accepts only numbers. Here they accept values of any types.

Source: cel-go cel/validator.go, homogeneousAggregateLiteralValidator.Validate (0.29); apiserver/pkg/cel/library/
lists.go, listsLib.CompileOptions (1.37).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from extender.dra.cel.messages import format_compile_error
from extender.dra.cel.syntax import get_kind, get_root, get_types

_PRIMITIVES: Final = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN: Final = ("", "any", "timestamp", "duration")
_NULL: Final = b"\x10\x00"  # the serialized null type
_SETS: Final = frozenset({"sets.contains", "sets.equivalent", "sets.intersects"})
_INDICES: Final = frozenset({"__indexOf", "__lastIndexOf"})
_COMPARABLE: Final = frozenset({"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes", "dyn"})
_ELEMENTS: Final = {
    "isSorted": _COMPARABLE,
    "min": _COMPARABLE,
    "max": _COMPARABLE,
    "sum": frozenset({"int", "uint", "double", "duration", "dyn"}),
}
"""The types of elements for which a function exists."""


def find_type_error(checked_expression: Any, text: str, expression: str) -> str:
    """Return the message of the first type error; empty if there is none.

    Args:
        checked_expression: the result of `syntax.parse_expression`.
        text: the text that was compiled.
        expression: the text before it was rewritten. If it is another one, the message does not have the place.
    """
    checker = _TypeChecker(checked_expression)
    if not checker.types:
        return ""
    errors = [
        (checker.positions.get(node_id, 0), error) for node_id, error in checker.check(get_root(checked_expression))
    ]
    position, error = min(errors, key=lambda place_and_error: place_and_error[0], default=(0, ""))
    if not error or text != expression:
        return error
    before = expression[:position]
    return format_compile_error(before.count("\n") + 1, position - before.rfind("\n"), error, expression)


class _TypeChecker:
    def __init__(self, checked_expression: Any) -> None:
        self.types = get_types(checked_expression)
        self.positions: dict[int, int] = {entry.id: entry.position for entry in checked_expression.source.positions}

    def check(self, node: Any) -> Iterator[tuple[int, str]]:
        """Yield the errors in *node* and its parts, each with the id of the node."""
        kind = get_kind(node)
        part: Any = getattr(node, kind) if kind else None
        match kind:
            case "select":
                yield from self.check(part.operand)
            case "list":
                yield from self._check_equal(part.elements)
                yield from self._check_all(part.elements)
            case "struct":
                yield from self._check_equal([entry.key for entry in part.entries])
                yield from self._check_equal([entry.value for entry in part.entries])
                yield from self._check_all([node for entry in part.entries for node in (entry.key, entry.value)])
            case "call":
                yield from self._check_call(node.id, part)
            case "comprehension":
                parts = (part.iter_range, part.accu_init, part.condition, part.step, part.result)
                yield from self._check_all(parts)

    def _check_all(self, nodes: Sequence[Any]) -> Iterator[tuple[int, str]]:
        for node in nodes:
            yield from self.check(node)

    def _get_type_name(self, node: Any) -> str:
        return _format_type(self.types.get(node.id))

    def _check_equal(self, nodes: Sequence[Any]) -> Iterator[tuple[int, str]]:
        """Yield an error for the first of *nodes* whose type is not that of the first node."""
        names = [self._get_type_name(node) for node in nodes]
        for node, name in zip(nodes[1:], names[1:], strict=True):
            has_dyn = self._is_dyn(nodes[0]) or self._is_dyn(node)
            if name != names[0] if has_dyn else not _may_be_equal(names[0], name):
                yield node.id, f"expected type '{names[0]}' but found '{name}'"
                return

    def _is_dyn(self, node: Any) -> bool:
        """Return whether *node* has the type `dyn` in Kubernetes too: an attribute of a device, or a call of `dyn`."""
        if self._get_type_name(node) != "dyn":
            return False
        if get_kind(node) == "call" and node.call.function == b"dyn":
            return True
        while get_kind(node) == "select" or (get_kind(node) == "call" and node.call.function == b"_[_]"):
            node = node.select.operand if get_kind(node) == "select" else node.call.args[0]
        return get_kind(node) == "ident" and node.ident.name.startswith(b"device.")

    def _check_call(self, node_id: int, call: Any) -> Iterator[tuple[int, str]]:
        function = call.function.decode()
        operands = [*([call.target] if call.HasField("target") else []), *call.args]
        if function == "format":  # the values to format have any types
            return
        if function in _INDICES:
            arguments = call.args[0].list.elements
            yield from self._check_index(node_id, function.removeprefix("__"), call.target, arguments)
            yield from self._check_all([call.target, *arguments])
            return
        names = [self._get_type_name(operand) for operand in operands]
        if function in _SETS and not _may_be_equal(*names):
            yield node_id, _explain_overload(function, f"({', '.join(names)})")
        elements = _ELEMENTS.get(function)
        if elements is not None and names[0].startswith("list(") and names[0][5:-1] not in elements:
            yield node_id, _explain_overload(function, f"{names[0]}.()")
        yield from self._check_all(operands)

    def _check_index(
        self, node_id: int, function: str, target: Any, arguments: Sequence[Any]
    ) -> Iterator[tuple[int, str]]:
        name, names = self._get_type_name(target), [self._get_type_name(argument) for argument in arguments]
        is_valid = name == "dyn" or (
            _may_be_equal(name, f"list({names[0]})") and len(names) == 1
            if name.startswith("list(")
            else all(map(_may_be_equal, ("string", "int"), names))
        )
        if not is_valid:
            yield node_id, _explain_overload(function, f"{name}.({', '.join(names)})")


def _explain_overload(function: str, types: str) -> str:
    return f"found no matching overload for '{function}' applied to '{types}'"


def _may_be_equal(name: str, other: str) -> bool:
    """Return whether two types are equal, or have no type in the same place, as an empty list has."""
    return name == other or "dyn" in (name, other) or "dyn" in name or "dyn" in other


def _format_type(cel_type: Any) -> str:
    """Return the name of a type, such as `list(int)`; `dyn` for None and unknown types."""
    kind = get_kind(cel_type) if cel_type is not None else "dyn"
    match kind:
        case "primitive":
            return _PRIMITIVES[cel_type.primitive]
        case "well_known":
            return _WELL_KNOWN[cel_type.well_known]
        case "list":
            return f"list({_format_type(cel_type.list.element)})"
        case "map":
            return f"map({_format_type(cel_type.map.key)}, {_format_type(cel_type.map.value)})"
        case "message":
            return str(cel_type.message.decode())
        case "" if cel_type.SerializeToString() == _NULL:
            return "null"
        case _:
            return "dyn"
