"""Marks the tests that run a real control plane."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the short soak of this folder."""
    for item in items:
        if item.path == FOLDER / "test_pod_lifecycles.py" and "short_soak" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.controlplane)
