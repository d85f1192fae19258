"""The prices of nodes, from labels and files."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.cli.planning.node_prices import load_price_function


def make_node(name: str, **labels: str) -> Node:
    return from_builtins(
        {"metadata": {"name": name, "labels": {k.replace("__", "/"): v for k, v in labels.items()}}}, Node
    )


def test_without_a_source_there_are_no_prices() -> None:
    assert load_price_function("", "") is None


def test_the_name_comes_before_the_instance_type_and_the_file_before_the_label(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("n1: 3\nlarge: 0.5\n")
    get_price = load_price_function("cost", str(file))
    assert get_price is not None
    instance = from_builtins(
        {"metadata": {"name": "n2", "labels": {"node.kubernetes.io/instance-type": "large", "cost": "9"}}}, Node
    )
    assert get_price(make_node("n1", cost="9")) == 3.0
    assert get_price(instance) == 0.5
    assert get_price(make_node("n3", cost="1.25")) == 1.25
    assert [get_price(make_node("n4", cost=text)) for text in ("", "cheap", "-1", "nan", "inf")] == [None] * 5


ERRORS = {
    "values that are no prices": (
        "n1: cheap\nn2: -1\nn3: true\n",
        [
            "n1: is 'cheap'; want a price, 0 or more",
            "n2: is -1; want a price, 0 or more",
            "n3: is True; want a price, 0 or more",
        ],
    ),
    "a list": ("[1]", ["want a mapping of node names or instance types to prices"]),
    "not a number": ("n1: .nan\n", ["n1: expected a JSON value, got the number nan"]),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_an_invalid_file_is_one_line_for_each_error(tmp_path: Path, text: str, message: list[str]) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_price_function("", str(file))
    assert [str(line) for line in caught.value.errors] == [f"{file}: {line}" for line in message]
