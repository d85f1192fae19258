"""Every recorded result of kube-scheduler, field by field and release by release: codes, reasons, scores, victims."""

from pathlib import Path

import pytest

from extender.analysis.explanation.explain_json import make_explanation_values
from extender.analysis.pending_pods import list_pending_pods, nominate_pending_pods
from extender.analysis.recorded_cluster import load_cache, read_recording
from extender.app import wiring
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASES, Release
from extender.cycle.explain_pod import explain_pod
from tests.parity import golden

CATEGORIES = (
    "resources", "taints", "nodeaffinity", "ports", "images", "interpodaffinity", "spread", "volumes", "preemption",
    "dra", "drabeta", "config", "gates", "mixed",
)  # fmt: skip
"""The compared categories: all."""


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("name", golden.scenario_names(*CATEGORIES))
def test_agrees_with_kube_scheduler(name: str, release: Release, tmp_path: Path) -> None:
    """Compare filters, first failures, scores, best nodes, messages, and victims per node."""
    file = tmp_path / f"{name}.json"
    file.write_bytes(golden.read_scenario(name))
    recording = read_recording([str(file)])
    gates = FeatureGates(release=release)
    setup = (
        wiring.build_setup_from_document(recording.config, name, gates)
        if recording.config
        else wiring.build_setup(gates=gates)
    )
    profile, runtime, cache = setup.first_profile, wiring.make_runtime(), load_cache(recording, gates)
    nominate_pending_pods(cache, profile, runtime)
    snapshot = cache.snapshot()

    got = {
        pod.key: golden.normalize(
            make_explanation_values(explain_pod(snapshot.make_pod_info(pod), snapshot, profile, runtime))
        )
        for pod in list_pending_pods(cache, (profile.scheduler_name,))
    }

    want = {key: golden.normalize(result) for key, result in golden.read_results(name, release.version).items()}
    assert golden.find_differences(want, got)[:10] == []
