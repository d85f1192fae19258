"""The device class that serves an extended resource.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).
"""

from collections.abc import Iterable
from typing import Final

from extender.api.kinds.devices import DeviceClass

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the implicit resource of a device class; the class's own name follows."""


def map_resources_to_device_classes(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Map each extended resource to the device class that serves it.

    Of several classes with the same `extendedResourceName`, the newest class serves it; of equally old classes, the
    class with the lowest name. As upstream, a class that does not take precedence over an earlier one does not serve
    its implicit resource either.

    Args:
        classes: the device classes in the order in which they were added.
    """
    class_by_resource: dict[str, DeviceClass] = {}
    for device_class in classes:
        explicit_name = device_class.spec.extended_resource_name
        if explicit_name is not None:
            current_class = class_by_resource.get(explicit_name)
            if current_class is not None and not _takes_precedence(device_class, current_class):
                continue
            class_by_resource[explicit_name] = device_class
        class_by_resource[IMPLICIT_PREFIX + device_class.metadata.name] = device_class
    return class_by_resource


def _takes_precedence(candidate: DeviceClass, current: DeviceClass) -> bool:
    candidate_time, current_time = _get_creation_time(candidate), _get_creation_time(current)
    return candidate_time > current_time or (
        candidate_time == current_time and candidate.metadata.name < current.metadata.name
    )


def _get_creation_time(device_class: DeviceClass) -> float:
    timestamp = device_class.metadata.creation_timestamp
    return timestamp.timestamp() if timestamp else float("-inf")
