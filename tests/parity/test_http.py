"""The verbs over HTTP answer every recorded scenario as `explain` does, in whatever form nodes are sent."""

import json
from pathlib import Path

import pytest

from extender.offline.capture import read_capture
from tests.parity import golden
from tests.parity.http_agreement import disagreements
from tests.parity.test_kube_scheduler import WHOLE


@pytest.mark.parametrize("name", golden.names(*WHOLE))
def test_filter_and_prioritize_agree_with_kube_scheduler(name: str, tmp_path: Path) -> None:
    """The same feasible nodes, the same reasons, and the order of the totals."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.scenario(name))

    found = disagreements(read_capture([str(file)]), json.loads(golden.scenario(name)), {"pods": golden.answers(name)})

    assert found[:10] == []
