"""What counts of the pods on nodes, by the feature gates in force. Source: A112, A113, B122."""

from extender.config.gates import FeatureGates
from extender.objects.requests import Counting


def counting_of(gates: FeatureGates) -> Counting:
    """What counts of a pod with these *gates*."""
    return Counting(
        status="InPlacePodVerticalScaling" in gates,
        pod_level="PodLevelResources" in gates,
        pod_level_resize="InPlacePodLevelResourcesVerticalScaling" in gates,
        devices="DRANodeAllocatableResources" in gates,
    )
