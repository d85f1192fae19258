"""PostFilter of DynamicResources: the claims that it releases after a failed attempt."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from extender.cache.cache import Cache
from extender.config.feature_gates import FeatureGates
from extender.config.releases import RELEASE_1_36, RELEASE_1_37
from extender.cycle.diagnosis import Diagnosis, NodeRejection
from extender.cycle.pre_filter import PreFilterRun
from extender.framework.extension_points import PostFilterResult
from extender.framework.plugin_args import PluginArgs
from extender.framework.status import Code, Status
from extender.plugins.dynamic_resources.args import DynamicResourcesArgs
from extender.plugins.dynamic_resources.plugin import DynamicResources
from tests.build import make_cluster, make_object, make_pod, make_pod_info
from tests.unit.dra.builders import make_allocated_claim, make_claim, make_device_class
from tests.unit.plugins.dynamic_resources.test_api_calls import make_cache, make_plugin, make_pod_with_claims


def get_post_filter_status(pre_filter_run: PreFilterRun, gates: FeatureGates) -> Status:
    attempt = SimpleNamespace(diagnosis=SimpleNamespace(pre_filter_run=pre_filter_run))
    plugin = DynamicResources(PluginArgs(DynamicResourcesArgs(), gates))
    result = plugin.post_filter(make_pod_info(), make_cluster().snapshot(), attempt)  # type: ignore[arg-type]
    assert result.nominated_node_name is None
    return result.status


@pytest.mark.parametrize(
    ("pre_filter_run", "gates", "code", "reason"),
    [
        pytest.param(
            PreFilterRun(skipped_plugins=frozenset({"DynamicResources"})),
            {},
            Code.UNSCHEDULABLE,
            "no new claims to deallocate",
            id="a pod that PreFilter skipped has no claim",
        ),
        pytest.param(
            PreFilterRun(cycle_state={"DynamicResources": None}),
            {},
            Code.UNSCHEDULABLE,
            "no new claims to deallocate",
            id="a pod that PreFilter rejected has no claim",
        ),
        pytest.param(PreFilterRun(), {}, Code.ERROR, "not found", id="an attempt that ended earlier is an error"),
        pytest.param(
            PreFilterRun(),
            {"DynamicResourceAllocation": False},
            Code.UNSCHEDULABLE,
            "plugin disabled",
            id="the plugin is disabled without its gate",
        ),
    ],
)
def test_after_a_failed_attempt(pre_filter_run: PreFilterRun, gates: dict[str, bool], code: Code, reason: str) -> None:
    """Since 1.37, a PostFilter that has nothing to do gives no reason."""
    assert get_post_filter_status(pre_filter_run, FeatureGates(gates, RELEASE_1_36)) == Status(code, (reason,))
    reasons = (reason,) if code is Code.ERROR else ()
    assert get_post_filter_status(pre_filter_run, FeatureGates(gates, RELEASE_1_37)) == Status(code, reasons)


def post_filter(cache: Cache, pod: Any) -> PostFilterResult:
    """Run PostFilter after Filter rejected nodes."""
    return run_post_filter(make_plugin(), cache, pod)


def run_post_filter(plugin: DynamicResources, cache: Cache, pod: Any) -> PostFilterResult:
    """Run PostFilter of *plugin* after its Filter rejected nodes."""
    pod_info = make_pod_info(pod, cache)
    result = plugin.pre_filter(pod_info, cache.snapshot())
    assert result.status is None
    view = cache.snapshot().view()
    rejections = tuple(
        NodeRejection(plugin.name, rejection.reason, rejection.nodes)
        for rejection in plugin.filter(pod_info, view, result.state)
    )
    cycle_pre_filter_run = PreFilterRun(cycle_state={plugin.name: result.state})
    diagnosis_of_attempt = Diagnosis(len(view), cycle_pre_filter_run, np.zeros(len(view), dtype=np.bool_), rejections)

    class FailedAttemptFake:
        diagnosis = diagnosis_of_attempt

    return plugin.post_filter(pod_info, cache.snapshot(), FailedAttemptFake())  # type: ignore[arg-type]


OTHER_NODES = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}}


def test_an_unusable_allocation_is_removed() -> None:
    cache = make_cache(make_allocated_claim("one", ["d0"], allocation=OTHER_NODES))
    result = post_filter(cache, make_pod_with_claims("one"))
    assert result.status == Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",))
    (call,) = result.plan.calls
    assert (call.verb, call.name, call.subresource) == ("patch", "one", "status")
    assert call.body["status"] == {"allocation": None, "reservedFor": None, "devices": None}


def test_an_allocation_in_use_by_another_pod_stays() -> None:
    other = {"resource": "pods", "name": "other", "uid": "other"}
    cache = make_cache(make_allocated_claim("one", ["d0"], allocation=OTHER_NODES, reservedFor=[other]))
    result = post_filter(cache, make_pod_with_claims("one"))
    assert (result.status.reasons, result.plan) == ((), None)


def test_a_claim_that_rejected_no_node_stays() -> None:
    cache = make_cache(make_allocated_claim("one", ["d0"]), make_claim("two", {"r": {"count": 2}}))
    assert post_filter(cache, make_pod_with_claims("one", "two")).status.reasons == ()


def test_an_existing_claim_for_extended_resources_is_deleted() -> None:
    existing_claim = make_object(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": "left",
                "namespace": "default",
                "uid": "left",
                "finalizers": ["mine", "resource.kubernetes.io/delete-protection"],
                "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
                "ownerReferences": [{"kind": "Pod", "name": "pod", "uid": "uid-default-pod", "controller": True}],
            },
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "served"}}]}},
        }
    )
    cache = make_cache(make_device_class("served", extendedResourceName="example.com/gpu"), existing_claim)
    result = post_filter(cache, make_pod(requests={"example.com/gpu": "1"}))
    assert result.status.reasons == ("deletion of ResourceClaim completed",)
    finalizer_patch, deletion = result.plan.calls
    assert finalizer_patch.body["metadata"]["finalizers"] == ["mine"]
    assert (deletion.verb, deletion.name) == ("delete", "left")
