"""Every recorded result of kube-scheduler 1.36, field by field: codes, reasons, scores, messages, victims."""

from pathlib import Path

import pytest

from extender.analysis.explain_json import make_explanation_values
from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods
from extender.analysis.recorded_cluster import load_cache, read_recording
from extender.app import wiring
from extender.cycle.explain_pod import explain_pod
from tests.parity import golden

CATEGORIES = (
    "resources", "taints", "nodeaffinity", "ports", "images", "interpodaffinity", "spread", "volumes", "preemption",
    "dra", "drabeta", "config", "gates", "mixed",
)  # fmt: skip
"""The compared categories: all."""


@pytest.mark.parametrize("name", golden.scenario_names(*CATEGORIES))
def test_agrees_with_kube_scheduler(name: str, tmp_path: Path) -> None:
    """Compare filters, first failures, scores, best nodes, messages, and victims per node."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.read_scenario(name))
    recording = read_recording([str(file)])
    scheduling = (
        wiring.build_scheduling_from_builtins(recording.config, name) if recording.config else wiring.build_scheduling()
    )
    profile, runtime, cache = scheduling.first_profile, wiring.make_runtime(), load_cache(recording)
    nominate_pending_pods(cache, profile, runtime)
    snapshot = cache.snapshot()

    got = {
        pod.key: golden.normalize(
            make_explanation_values(explain_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime))
        )
        for pod in list_pending_pods(cache, (profile.scheduler_name,))
    }

    want = {key: golden.normalize(result) for key, result in golden.read_results(name).items()}
    assert golden.find_differences(want, got)[:10] == []
