"""Permit of pods whose resize is deferred; tests/cases has the other extension points."""

from typing import Any

from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_37
from extender.framework.binding_points import ALLOW
from extender.framework.plugin_args import PluginArgs
from extender.plugins.deferred_pod_scheduling import DeferredPodScheduling
from tests.build import make_cluster, make_pod, make_pod_info

DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}


def run_permit(status: dict[str, Any], *, gate: bool = True) -> Any:
    gates = FeatureGates({"InPlacePodVerticalScalingSchedulerPreemption": gate}, RELEASE_1_37)
    pod = make_pod_info(make_pod(node="a", status=status))
    return DeferredPodScheduling(PluginArgs(None, gates)).permit(pod, "a", make_cluster().snapshot(), None)


def test_permit_rejects_a_resize_that_fits() -> None:
    status = run_permit(DEFERRED).status
    assert (status.code.label, status.reasons) == (
        "UnschedulableAndUnresolvable",
        ("pod resize fits, waiting for Kubelet actuation",),
    )


def test_permit_allows_other_pods() -> None:
    assert run_permit({}) is ALLOW
    assert run_permit(DEFERRED, gate=False) is ALLOW
