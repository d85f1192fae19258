"""The adapters of per-node plugins name the node for which a plugin raises or returns an invalid result."""

import re
import sys
from typing import Any

import pytest

from extender.plugin import filter_plugin, score_plugin
from extender.testing import PluginFailedError, make_cluster, make_node, make_pod, run_plugin


def run_failing(plugin: object) -> str:
    """Run *plugin* on two nodes, and return the error without line numbers."""
    cluster = make_cluster(make_node("one"), make_node("two"), make_pod("web"))
    with pytest.raises(PluginFailedError) as error:
        run_plugin(plugin, cluster, "web")
    return re.sub(r"\.py:\d+", ".py", str(error.value))


CASES: dict[str, tuple[Any, str]] = {
    "a filter that raises": (
        filter_plugin("Wrong")(lambda pod, node: node.labels["zone"]),
        "running \"Wrong\" filter plugin: node one: KeyError: 'zone' (tests/unit/framework/per_node/test_adapters.py)",
    ),
    "a score that exits": (
        score_plugin("Wrong")(lambda pod, node: sys.exit(3)),
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: SystemExit: 3 (tests/unit/framework/per_node/test_adapters.py)",
    ),
    "a filter that returns False": (
        filter_plugin("Wrong")(lambda pod, node: False),  # type: ignore[type-var]
        'running "Wrong" filter plugin: node one: returned bool False, '
        "want None if the node fits the pod, else a text with the reason",
    ),
    "a filter that returns an empty text": (
        filter_plugin("Wrong")(lambda pod, node: ""),
        "running \"Wrong\" filter plugin: node one: returned str '', "
        "want None if the node fits the pod, else a text with the reason",
    ),
    "a score that raises": (
        score_plugin("Wrong")(lambda pod, node: int(node.name)),
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: ValueError: invalid literal for int() with base 10: 'one' "
        "(tests/unit/framework/per_node/test_adapters.py)",
    ),
    "a score that is NaN": (
        score_plugin("Wrong")(lambda pod, node: float("nan")),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: node one: the score is nan, which is no number',
    ),
    "a score that is a fraction": (
        score_plugin("Wrong")(lambda pod, node: 0.5),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: the score is 0.5, want a whole number: use int() or round()",
    ),
    "a score that is None": (
        score_plugin("Wrong")(lambda pod, node: None),  # type: ignore[type-var]
        'running Score plugins: plugin "Wrong" failed with: node one: the score is None, want a whole number',
    ),
    "a score past 64 bits": (
        score_plugin("Wrong")(lambda pod, node: 2**63),
        'running Score plugins: plugin "Wrong" failed with: '
        "node one: the score 9223372036854775808 does not fit into 64 bits",
    ),
    "a score below 0 that is normalized": (
        score_plugin("Wrong", normalize=True)(lambda pod, node: -1),
        'running Normalize on Score plugins: plugin "Wrong" failed with: '
        "node one: the score -1 is below 0, which cannot be normalized; "
        "score from 0 up",
    ),
}


@pytest.mark.parametrize(("plugin", "want"), CASES.values(), ids=CASES)
def test_a_failing_per_node_plugin_is_named_with_the_node(plugin: object, want: str) -> None:
    assert run_failing(plugin) == want
    # Nothing of a failed call is cached.
    assert run_failing(plugin) == want


def test_more_than_100_different_reasons_are_an_error() -> None:
    plugin = filter_plugin("Wrong")(lambda pod, node: f"{node.name} is wrong")
    cluster = make_cluster(*(make_node(f"n{number}") for number in range(101)), make_pod("web"))
    with pytest.raises(PluginFailedError, match="more than 100 different reasons, such as str 'n100 is wrong'"):
        run_plugin(plugin, cluster, "web")
