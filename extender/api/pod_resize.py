"""The state of an in-place resize of a pod.

Source: component-helpers/resource/helpers.go, IsPodResizeDeferred (1.37).
"""

from extender.api.kinds.pod import Pod


def is_resize_deferred(pod: Pod) -> bool:
    """Return whether the kubelet deferred the resize of *pod*, because its node has too few free resources now."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Deferred"
    return False
