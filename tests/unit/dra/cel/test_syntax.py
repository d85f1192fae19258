"""The syntax tree of a compiled expression."""

from extender.dra.cel import environment
from extender.dra.cel.syntax import get_kind, get_root, get_types, parse_expression


def test_the_nodes_of_a_checked_expression_have_types() -> None:
    program, _ = environment._compile_text("[1, 2].size() == 2")
    checked = parse_expression(program.serialize())
    root = get_root(checked)
    assert (get_kind(root), root.call.function) == ("call", b"_==_")
    assert get_types(checked)[root.id].primitive == 1  # bool


def test_an_expression_without_type_checks_has_no_types() -> None:
    """Numbers of different types are compared without type checks."""
    program, _ = environment._compile_text("1 < 1.5")
    checked = parse_expression(program.serialize())
    assert get_types(checked) == {}
    assert get_kind(get_root(checked)) == "call"
