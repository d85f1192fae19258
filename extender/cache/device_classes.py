"""Find the device class that serves each extended resource.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA (1.36).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.api.kinds.devices import DeviceClass
from extender.cache.snapshot import Snapshot

IMPLICIT_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the implicit extended resource of a device class. The rest of the resource name is the class's name."""


def get_class_by_resource(snapshot: Snapshot) -> Mapping[str, DeviceClass]:
    """Return the device class that serves each extended resource. The result is computed once per change of a class."""
    key = "device classes", snapshot.kind_version(DeviceClass)
    return snapshot.symbols.get_or_create(
        key, lambda: map_resources_to_device_classes(snapshot.objects(DeviceClass).values())
    )


def map_resources_to_device_classes(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Map each extended resource to the device class that serves it.

    If several classes have the same `extendedResourceName`, the newest class serves the resource. If these classes are
    equally old, the class whose name sorts first serves it. As upstream, a class loses its implicit resource too if it
    does not take precedence over an earlier class. *classes* are in the order in which they were added.
    """
    class_by_resource: dict[str, DeviceClass] = {}
    for device_class in classes:
        explicit_name = device_class.spec.extended_resource_name
        if explicit_name is not None:
            current_class = class_by_resource.get(explicit_name)
            if current_class is not None and not _takes_precedence(device_class, current_class):
                continue
            class_by_resource[explicit_name] = device_class
        class_by_resource[IMPLICIT_RESOURCE_PREFIX + device_class.metadata.name] = device_class
    return class_by_resource


def _takes_precedence(candidate: DeviceClass, current: DeviceClass) -> bool:
    candidate_time, current_time = _get_creation_time(candidate), _get_creation_time(current)
    return candidate_time > current_time or (
        candidate_time == current_time and candidate.metadata.name < current.metadata.name
    )


def _get_creation_time(device_class: DeviceClass) -> float:
    timestamp = device_class.metadata.creation_timestamp
    return timestamp.timestamp() if timestamp else float("-inf")
