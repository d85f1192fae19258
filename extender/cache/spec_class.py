"""Group pods whose specs are equal except for amounts of resources.

The pods of two Jobs often differ in labels and requested amounts, but most plugin results depend on neither. Plugins
can cache such results by spec class.
"""

import msgspec
from msgspec.structs import replace

from extender.api.kinds.meta import ResourceList
from extender.api.kinds.pod import Container, PodSpec, ResourceRequirements
from extender.basics.memo import Memo

_MAX_CLASSES = 1 << 12
_ZERO = "0"

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def fingerprint(value: object) -> bytes:
    """Encode *value* as bytes. Two values of one type have equal bytes if and only if the values are equal."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # a quantity written as a number beyond 64 bits
        return repr(value).encode()


class SpecClass(Memo):
    """A class of pods whose specs are equal except for amounts of resources. It caches values for these pods.

    The values must depend only on the parts of the spec that are equal in the class. The names of the requested
    resources are equal. The pods can be on different nodes.
    """

    __slots__ = ()


class SpecClassCache:
    """The spec classes of one cluster."""

    __slots__ = ("_classes",)

    def __init__(self) -> None:
        self._classes: dict[bytes, SpecClass] = {}

    def get(self, spec: PodSpec) -> SpecClass:
        """Return the class of *spec*. The caller must pass a spec without a node name."""
        key = fingerprint(zero_amounts(spec))
        spec_class = self._classes.get(key)
        if spec_class is None:
            if len(self._classes) >= _MAX_CLASSES:
                self._classes.clear()
            spec_class = self._classes[key] = SpecClass()
        return spec_class


def zero_amounts(spec: PodSpec) -> PodSpec:
    """Return *spec* with every amount of a resource set to 0."""
    return replace(
        spec,
        containers=tuple(map(_zero_container, spec.containers)),
        init_containers=tuple(map(_zero_container, spec.init_containers)),
        overhead=_zero_resource_list(spec.overhead),
        resources=None if spec.resources is None else _zero_resources(spec.resources),
    )


def _zero_container(container: Container) -> Container:
    return replace(container, resources=_zero_resources(container.resources))


def _zero_resources(resources: ResourceRequirements) -> ResourceRequirements:
    return replace(
        resources, requests=_zero_resource_list(resources.requests), limits=_zero_resource_list(resources.limits)
    )


def _zero_resource_list(amounts: ResourceList) -> ResourceList:
    return dict.fromkeys(amounts, _ZERO)
