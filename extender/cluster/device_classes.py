"""Which device class serves an extended resource. Source: B034."""

from collections.abc import Iterable
from typing import Final

from extender.objects.devices import DeviceClass

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Every device class serves the resource of this prefix and its own name."""


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """The device class that serves each extended resource.

    Of several classes with one `extendedResourceName` the newest counts, among equally old ones the one with the
    lowest name. As upstream, a class that comes after one it loses to does not serve its implicit resource either.

    Args:
        classes: in the order of their arrival.
    """
    served: dict[str, DeviceClass] = {}
    for new in classes:
        explicit = new.spec.extended_resource_name
        if explicit is not None:
            known = served.get(explicit)
            if known is not None and not _replaces(new, known):
                continue
            served[explicit] = new
        served[IMPLICIT_PREFIX + new.metadata.name] = new
    return served


def _replaces(new: DeviceClass, known: DeviceClass) -> bool:
    made, before = _created(new), _created(known)
    return made > before or (made == before and new.metadata.name < known.metadata.name)


def _created(thing: DeviceClass) -> float:
    created = thing.metadata.creation_timestamp
    return created.timestamp() if created else float("-inf")
