"""The table of kinds."""

import msgspec
import pytest

from extender.objects import codec
from extender.objects.devices import DeviceClass
from extender.objects.kinds import KINDS
from extender.objects.meta import KubernetesObject
from extender.objects.storage import CSIStorageCapacity


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()), key=str))
def test_every_kind_reads_an_empty_object_and_cannot_be_changed(kind: type[KubernetesObject]) -> None:
    made = codec.decode(b"{}", kind)
    assert made == kind()
    assert made.metadata.name == ""
    with pytest.raises(AttributeError):
        made.metadata = made.metadata  # type: ignore[misc]


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()), key=str))
def test_every_kind_is_found_by_its_own_name(kind: type[KubernetesObject]) -> None:
    assert {name for (_, name), known in KINDS.items() if known is kind} == {kind.__name__}


def test_older_versions_of_the_same_shape_are_known_and_others_not() -> None:
    assert KINDS["storage.k8s.io/v1beta1", "CSIStorageCapacity"] is CSIStorageCapacity
    assert KINDS["resource.k8s.io/v1beta2", "DeviceClass"] is DeviceClass
    assert ("resource.k8s.io/v1beta1", "DeviceClass") not in KINDS
    assert ("policy/v1beta1", "PodDisruptionBudget") not in KINDS


# Names in which an abbreviation is written in capitals, or that begin with one.
IRREGULAR = {
    "hostIP", "providerID", "podCIDR", "podCIDRs", "volumeID", "diskURI", "nodeID", "shareID", "pdName", "iqn",
    "gcePersistentDisk", "awsElasticBlockStore", "csi", "rbd", "iscsi", "int", "bool", "string", "version", "ints",
    "bools", "strings", "versions", "fsType",
}  # fmt: skip


def json_names(shape: msgspec.inspect.Type, seen: set[type]) -> set[str]:
    match shape:
        case msgspec.inspect.StructType() if shape.cls not in seen:
            seen.add(shape.cls)
            below = (json_names(field.type, seen) for field in shape.fields)
            return {field.encode_name for field in shape.fields}.union(*below)
        case msgspec.inspect.DictType():
            return json_names(shape.value_type, seen)
        case msgspec.inspect.VarTupleType():
            return json_names(shape.item_type, seen)
        case msgspec.inspect.UnionType():
            return set[str]().union(*(json_names(part, seen) for part in shape.types))
        case _:
            return set()


def test_abbreviations_are_written_as_kubernetes_writes_them() -> None:
    seen: set[type] = set()
    names: set[str] = set()
    for kind in set(KINDS.values()):
        names |= json_names(msgspec.inspect.type_info(kind), seen)
    assert names >= IRREGULAR
    wrong = ("Ip", "Id", "Cidr", "Uri", "Cidrs", "Uid", "Url")
    assert {name for name in names if name.endswith(wrong)} == set()
