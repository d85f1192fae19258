"""Wildcards in the scenarios of a sweep."""

from typing import Any

from extender.planning.sweep import expand_wildcards, format_scenario_name, list_node_types
from tests.unit.planning.clusters import ZONE, make_cache, node


def typed_node(name: str, instance_type: str) -> dict[str, Any]:
    body = node(name)
    body["metadata"]["labels"]["node.kubernetes.io/instance-type"] = instance_type
    return body


def test_a_wildcard_stands_for_each_node_and_each_value_of_a_label() -> None:
    snapshot = make_cache(node("n1", zone="b"), node("n2", zone="a"), node("n3", zone="b")).snapshot()
    assert list(expand_wildcards({"drain": ["*"]}, snapshot)) == [
        {"drain": ["n1"]},
        {"drain": ["n2"]},
        {"drain": ["n3"]},
    ]
    assert list(expand_wildcards({"lose": [f"{ZONE}=*"]}, snapshot)) == [
        {"lose": [f"{ZONE}=a"]},
        {"lose": [f"{ZONE}=b"]},
    ]
    assert list(expand_wildcards({"lose": ["rack=*"]}, snapshot)) == [{"lose": ["rack=*"]}]
    assert list(expand_wildcards({"drain": ["n1", "n3"]}, snapshot)) == [{"drain": ["n1", "n3"]}]


def test_several_wildcards_give_all_combinations() -> None:
    snapshot = make_cache(node("n1"), node("n2")).snapshot()
    assert list(expand_wildcards({"drain": ["*"], "cordon": ["*"]}, snapshot)) == [
        {"drain": [first], "cordon": [second]} for first in ("n1", "n2") for second in ("n1", "n2")
    ]


def test_a_node_type_is_its_instance_type_or_else_its_size() -> None:
    snapshot = make_cache(
        typed_node("a1", "large"), node("b1", "2"), typed_node("a2", "large"), node("b2", "2"), node("c1", "8")
    ).snapshot()
    assert list_node_types(snapshot) == ["a1", "b1", "c1"]


def test_a_scenario_is_named_by_its_flags() -> None:
    assert format_scenario_name({"add": ["2"], "like": ["n1"], "drain": ["n2", "n3"]}) == (
        "--add 2 --like n1 --drain n2 --drain n3"
    )
