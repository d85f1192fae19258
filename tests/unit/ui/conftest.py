"""The pages of the demo's recorded cluster."""

from pathlib import Path

import pytest

from extender.analysis.recorded_cluster import read_recording
from extender.app import wiring
from extender.ui.page_source import RecordedSource

DEMO = Path(__file__).parents[3] / "docs" / "examples" / "demo" / "cluster.yaml"


@pytest.fixture(scope="session")
def demo_source() -> RecordedSource:
    """The demo's recorded cluster: twelve nodes, 27 assigned and eight pending pods."""
    setup = wiring.build_setup()
    recording = read_recording([str(DEMO)])
    return RecordedSource(recording, setup.profiles, wiring.make_runtime(), "-f cluster.yaml")
