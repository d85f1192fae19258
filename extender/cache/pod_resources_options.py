"""Turn feature gates and the release into the options that decide which resources of a pod count on its node.

Source: component-helpers/resource/helpers.go, PodRequests, determineEffectiveRequests;
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from extender.api.requests import PodResourcesOptions
from extender.config.feature_gates import FeatureGates


def make_pod_resources_options(gates: FeatureGates) -> PodResourcesOptions:
    """Return the options for computing a pod's resources under *gates*."""
    return PodResourcesOptions(
        use_status_resources="InPlacePodVerticalScaling" in gates,
        pod_level_resources="PodLevelResources" in gates,
        in_place_pod_level_resize="InPlacePodLevelResourcesVerticalScaling" in gates,
        dra_node_allocatable="DRANodeAllocatableResources" in gates,
        maximum_of_sums=gates.release.takes_maximum_of_resize_sums,
    )
