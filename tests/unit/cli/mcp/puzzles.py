"""Scheduling puzzles as data, with the calls of MCP tools that answer them."""

from pathlib import Path
from typing import Any, Final

import yaml

from tests.unit.planning.clusters import as_list, budget, node, pod

PUZZLES: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).resolve().parents[3] / "cases" / "mcp_puzzles.yaml").read_text()
)
"""The puzzles by name."""


def make_cluster(puzzle: dict[str, Any]) -> str:
    """Return the cluster of a puzzle as the text of a List."""
    objects = [budget(**each["budget"]) for each in puzzle.get("objects", ())]
    return as_list([*(node(**each) for each in puzzle["nodes"]), *(pod(**each) for each in puzzle["pods"]), *objects])
