"""Every recorded answer of kube-scheduler 1.36, field by field: codes, reasons, scores, messages, victims."""

from pathlib import Path

import pytest

from extender import wiring
from extender.decide.examine import examine
from extender.offline.answers import answer
from extender.offline.capture import load_state, read_capture
from extender.offline.waiting import nominate_waiting, waiting
from tests.parity import golden

WHOLE = (
    "resources", "taints", "nodeaffinity", "ports", "images", "interpodaffinity", "spread", "volumes", "preemption",
    "dra", "drabeta", "config", "gates", "mixed",
)  # fmt: skip
"""Categories that agree in everything."""


@pytest.mark.parametrize("name", golden.names(*WHOLE))
def test_agrees_with_kube_scheduler(name: str, tmp_path: Path) -> None:
    """Filters, first failures, scores, best nodes, messages, whom to evict where."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.scenario(name))
    capture = read_capture([str(file)])
    scheduling = wiring.from_builtins(capture.config, name) if capture.config else wiring.scheduling()
    profile, engine, state = scheduling.first, wiring.engine(), load_state(capture)
    nominate_waiting(state, profile, engine)
    snapshot = state.snapshot()

    got = {
        pod.key: golden.comparable(answer(examine(snapshot.query(pod), snapshot, profile, engine)))
        for pod in waiting(state, (profile.scheduler_name,))
    }

    want = {key: golden.comparable(result) for key, result in golden.answers(name).items()}
    assert golden.differences(want, got)[:10] == []
