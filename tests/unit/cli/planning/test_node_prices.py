"""The prices of nodes, from labels and files."""

from pathlib import Path

import pytest

from extender.analysis.input.input_errors import InputError
from extender.analysis.recorded_cluster import Recording, parse_recording
from extender.api.codec import from_builtins
from extender.api.kinds.node import Node
from extender.cli.planning.node_prices import load_price_function, load_prices


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


def make_recording() -> Recording:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {cost-per-day: '3'}}\n"
    return parse_recording(f"{node}status: {{allocatable: {{pods: '9'}}}}\n".encode(), "c.yaml")


def test_a_cluster_without_any_price_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("n2: 3\n")
    assert load_prices("", "", make_recording()) is None
    load_prices("cost-per-day", "", make_recording())
    assert capsys.readouterr().err == ""
    load_prices("cost-per-dya", "", make_recording())
    assert capsys.readouterr().err == (
        'extender: no node has a price: none has the label cost-per-dya; did you mean "cost-per-day"?\n'
    )
    load_prices("", str(file), make_recording())
    assert capsys.readouterr().err == (
        "extender: no node has a price: want the names or instance types of nodes in --prices,"
        " or numbers in --cost-label\n"
    )


ERRORS = {
    "values that are no prices": (
        "n1: cheap\nn2: -1\nn3: true\nn4: {usd: 1}\nn5: [1]\nn6:\n",
        [
            'n1: is the string "cheap"; want a price, 0 or more',
            "n2: is the integer -1; want a price, 0 or more",
            "n3: is the boolean true; want a price, 0 or more",
            "n4: is an object; want a price, 0 or more",
            "n5: is a list; want a price, 0 or more",
            "n6: is null; want a price, 0 or more",
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
