"""The verbs over HTTP return kube-scheduler's results for every recorded scenario, by node names and by whole nodes."""

import asyncio
import json
from pathlib import Path

import pytest

from extender.analysis.recorded_cluster import read_recording
from extender.config.releases import RELEASES, Release
from tests.parity import golden
from tests.parity.http_agreement import find_differences
from tests.parity.test_kube_scheduler import CATEGORIES


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("name", golden.make_scenario_parameters(*CATEGORIES))
def test_filter_and_prioritize_agree_with_kube_scheduler(name: str, release: Release, tmp_path: Path) -> None:
    """Feasible nodes, reasons and the order of the totals are equal."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.read_scenario(name))

    recording, scenario = read_recording([str(file)]), json.loads(golden.read_scenario(name))
    expected = {"pods": golden.read_results(name, release.version)}

    lines = asyncio.run(find_differences(recording, scenario, expected, release))

    assert lines[:10] == []
