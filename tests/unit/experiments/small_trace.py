"""A small trace for the tests of experiments: 6 nodes with 20 GPUs and 40 pods."""

import json
from typing import Any

from extender.analysis.recorded_cluster import parse_recording
from extender.experiments.gpu_trace import Trace, make_trace
from extender.testing import make_node
from tests.unit.plugins.gpu_share.gpu_builders import gpu_node, shared_pod, whole_pod


def small_objects() -> list[dict[str, Any]]:
    """Return the objects of the trace, the names in reverse order."""
    nodes = [gpu_node(f"n{number}", gpus=2 + 2 * (number % 3 == 0), cpu="32") for number in range(6)]
    shared = [shared_pod(f"s{number:02d}", (300, 470, 650, 810)[number % 4], cpu="4") for number in range(30)]
    whole = [whole_pod(f"w{number:02d}", 1 + number % 2, cpu="8") for number in range(10)]
    return [*reversed(whole), *reversed(shared), *reversed(nodes), make_node("cpu-only")]


def small_trace_text() -> str:
    """Return the trace as a JSON List."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": small_objects()})


def small_trace() -> Trace:
    """Return the trace."""
    return make_trace(parse_recording(small_trace_text().encode(), "small.json"))
