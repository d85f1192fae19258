"""What pods have in common whose specs differ in nothing but amounts of resources.

Jobs come with labels and a size of their own each, and most of what plugins make of a pod follows from neither.
"""

from msgspec.structs import replace

from extender.basics.memo import Memo
from extender.cluster.identity import identity
from extender.objects.pod import Container, PodSpec, ResourceRequirements
from extender.objects.record import ResourceList

_MOST = 1 << 12
_NOTHING = "0"


class Kin(Memo):
    """Stands for all pods of one spec, amounts of resources aside; it remembers what follows from that alone.

    Which resources are named still counts. Metadata, the name of the node and the status do not.
    """

    __slots__ = ()


class Kinship:
    """Who is kin to whom in one cluster."""

    __slots__ = ("_kins",)

    def __init__(self) -> None:
        self._kins: dict[bytes, Kin] = {}

    def of(self, spec: PodSpec) -> Kin:
        """The kin of pods with this *spec*, which names no node."""
        alike = identity(without_amounts(spec))
        kin = self._kins.get(alike)
        if kin is None:
            if len(self._kins) >= _MOST:
                self._kins.clear()
            kin = self._kins[alike] = Kin()
        return kin


def without_amounts(spec: PodSpec) -> PodSpec:
    """*spec* with every amount of a resource that it names at 0."""
    return replace(
        spec,
        containers=tuple(map(_bare, spec.containers)),
        init_containers=tuple(map(_bare, spec.init_containers)),
        overhead=_zeros(spec.overhead),
        resources=None if spec.resources is None else _nothing_of(spec.resources),
    )


def _bare(container: Container) -> Container:
    return replace(container, resources=_nothing_of(container.resources))


def _nothing_of(resources: ResourceRequirements) -> ResourceRequirements:
    return replace(resources, requests=_zeros(resources.requests), limits=_zeros(resources.limits))


def _zeros(amounts: ResourceList) -> ResourceList:
    return dict.fromkeys(amounts, _NOTHING)
