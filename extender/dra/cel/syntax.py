"""The syntax tree of a compiled expression, with the types that the library found.

Source: dynamic-resource-allocation/cel/compile.go, newCompiler (1.36).
"""

from functools import cache
from importlib import import_module
from typing import Any, Final

# Message, field number, field name, message type ("" for text) and whether the field is repeated.
# Source: cel-spec/proto/cel/expr/syntax.proto.
_FIELDS: Final = (
    ("Checked", 4, "expr", "Expr", False),
    ("Checked", 2, "parsed", "Expr", False),
    ("Checked", 3, "types", "", True),
    ("Checked", 5, "source", "Source", False),
    ("Source", 4, "positions", "PositionEntry", True),
    ("PositionEntry", 1, "id", "int64", False),
    ("PositionEntry", 2, "position", "int64", False),
    ("TypeEntry", 1, "id", "int64", False),
    ("TypeEntry", 2, "type", "Type", False),
    ("Type", 1, "dyn", "Empty", False),
    ("Type", 3, "primitive", "int64", False),
    ("Type", 5, "well_known", "int64", False),
    ("Type", 6, "list", "ListType", False),
    ("Type", 7, "map", "MapType", False),
    ("Type", 9, "message", "", False),
    ("Type", 14, "abstract", "AbstractType", False),
    ("ListType", 1, "element", "Type", False),
    ("MapType", 1, "key", "Type", False),
    ("MapType", 2, "value", "Type", False),
    ("AbstractType", 1, "name", "", False),
    ("Expr", 2, "id", "int64", False),
    ("Expr", 3, "const", "Const", False),
    ("Expr", 4, "ident", "Ident", False),
    ("Expr", 5, "select", "Select", False),
    ("Expr", 6, "call", "Call", False),
    ("Expr", 7, "list", "List", False),
    ("Expr", 8, "struct", "Struct", False),
    ("Expr", 9, "comprehension", "Comprehension", False),
    ("Const", 6, "text", "", False),
    ("Const", 7, "data", "", False),
    ("Const", 3, "number", "int64", False),
    ("Ident", 1, "name", "", False),
    ("Select", 1, "operand", "Expr", False),
    ("Call", 1, "target", "Expr", False),
    ("Call", 2, "function", "", False),
    ("Call", 3, "args", "Expr", True),
    ("List", 1, "elements", "Expr", True),
    ("Struct", 2, "entries", "Entry", True),
    ("Entry", 3, "key", "Expr", False),
    ("Entry", 4, "value", "Expr", False),
    ("Comprehension", 1, "iter_var", "", False),
    ("Comprehension", 8, "iter_var2", "", False),
    ("Comprehension", 2, "iter_range", "Expr", False),
    ("Comprehension", 3, "accu_var", "", False),
    ("Comprehension", 4, "accu_init", "Expr", False),
    ("Comprehension", 5, "condition", "Expr", False),
    ("Comprehension", 6, "step", "Expr", False),
    ("Comprehension", 7, "result", "Expr", False),
)


@cache
def _get_message_classes() -> Any:
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    descriptors = import_module("google.protobuf.descriptor_pb2")
    file = descriptors.FileDescriptorProto(name="cel_syntax.proto", package="syntax", syntax="proto3")
    messages: dict[str, Any] = {"Empty": file.message_type.add(name="Empty")}
    for message, number, name, type_name, is_repeated in _FIELDS:
        if message not in messages:
            messages[message] = file.message_type.add(name=message)
        field = messages[message].field.add(name=name, number=number, label=3 if is_repeated else 1)
        if type_name in {"", "int64"}:
            field.type = 12 if not type_name else 3  # bytes or int64
        else:
            field.type, field.type_name = 11, f".syntax.{type_name}"
    wrapper = file.message_type.add(name="Any")
    wrapper.field.add(name="value", number=2, type=12, label=1)
    pool.Add(file)
    factory = import_module("google.protobuf.message_factory")
    names = ("Any", "Checked", "TypeEntry")
    return tuple(factory.GetMessageClass(pool.FindMessageTypeByName(f"syntax.{name}")) for name in names)


class NestingError(ValueError):
    """An expression has more levels than a message of protobuf may have: about 29 nested loops."""


def parse_expression(serialized_expression: bytes) -> Any:
    """Return the message `Checked` of an expression. It has no `expr` if the library did not check the types.

    Args:
        serialized_expression: the expression in an `Any` message, as the library serializes it.

    Raises:
        NestingError: the expression is nested too deeply.
    """
    wrapper_class, checked_class, _ = _get_message_classes()
    try:
        return checked_class.FromString(wrapper_class.FromString(serialized_expression).value)
    except import_module("google.protobuf.message").DecodeError as error:
        raise NestingError from error


def get_root(checked_expression: Any) -> Any:
    """Return the outermost node of an expression from `parse_expression`."""
    return checked_expression.expr if checked_expression.HasField("expr") else checked_expression.parsed


def get_kind(node: Any) -> str:
    """Return the name of the field that has the content of *node*, such as `call`; empty if it has none."""
    return next((field.name for field, _ in node.ListFields() if field.name != "id"), "")


def get_types(checked_expression: Any) -> dict[int, Any]:
    """Return the types of the nodes of an expression by id; none if the library did not check the types."""
    if not checked_expression.HasField("expr"):
        return {}
    _, _, entry_class = _get_message_classes()
    entries = map(entry_class.FromString, checked_expression.types)
    return {entry.id: entry.type for entry in entries}
