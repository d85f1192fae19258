"""The state of an in-place resize of a pod.

Source: component-helpers/resource/helpers.go, IsPodResizeDeferred (1.37).
"""

from extender.api.kinds.meta import find_condition
from extender.api.kinds.pod import Pod


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet deferred the resize of *pod*, because its node has too few free resources now."""
    condition = find_condition(pod.status.conditions, "PodResizePending")
    return condition is not None and condition.reason == "Deferred"
