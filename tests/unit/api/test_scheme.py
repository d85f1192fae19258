"""The types of the kinds."""

import msgspec
import pytest

from extender.api import codec
from extender.api.kinds.devices import DeviceClass
from extender.api.kinds.meta import KubernetesObject
from extender.api.kinds.storage import CSIStorageCapacity
from extender.api.scheme import KINDS, get_kind_name


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()), key=str))
def test_every_kind_decodes_an_empty_object_and_is_immutable(kind: type[KubernetesObject]) -> None:
    decoded = codec.decode(b"{}", kind)
    assert decoded == kind()
    assert decoded.metadata.name == ""
    with pytest.raises(AttributeError):
        decoded.metadata = decoded.metadata  # type: ignore[misc]


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()), key=str))
def test_every_type_is_registered_by_its_kind(kind: type[KubernetesObject]) -> None:
    assert {name for (_, name), struct in KINDS.items() if struct is kind} == {get_kind_name(kind)}


def test_only_older_versions_with_equal_fields_are_registered() -> None:
    assert KINDS["storage.k8s.io/v1beta1", "CSIStorageCapacity"] is CSIStorageCapacity
    assert KINDS["resource.k8s.io/v1beta2", "DeviceClass"] is DeviceClass
    assert ("resource.k8s.io/v1beta1", "DeviceClass") not in KINDS
    assert ("policy/v1beta1", "PodDisruptionBudget") not in KINDS


# Names with an upper-case abbreviation, or that begin with an abbreviation.
IRREGULAR = {
    "hostIP", "providerID", "volumeID", "diskURI", "shareID", "pdName", "iqn", "gcePersistentDisk",
    "awsElasticBlockStore", "csi", "rbd", "iscsi", "int", "bool", "string", "version", "ints", "bools", "strings",
    "versions",
}  # fmt: skip


def json_names(info: msgspec.inspect.Type, seen: set[type]) -> set[str]:
    match info:
        case msgspec.inspect.StructType() if info.cls not in seen:
            seen.add(info.cls)
            nested = (json_names(field.type, seen) for field in info.fields)
            return {field.encode_name for field in info.fields}.union(*nested)
        case msgspec.inspect.DictType():
            return json_names(info.value_type, seen)
        case msgspec.inspect.VarTupleType():
            return json_names(info.item_type, seen)
        case msgspec.inspect.UnionType():
            return set[str]().union(*(json_names(member, seen) for member in info.types))
        case _:
            return set()


def test_abbreviations_have_the_spelling_of_kubernetes() -> None:
    seen: set[type] = set()
    names: set[str] = set()
    for kind in set(KINDS.values()):
        names |= json_names(msgspec.inspect.type_info(kind), seen)
    assert names >= IRREGULAR
    misspelled = ("Ip", "Id", "Cidr", "Uri", "Cidrs", "Uid", "Url")
    assert {name for name in names if name.endswith(misspelled)} == set()


def test_a_type_may_have_another_name_than_its_kind() -> None:
    assert get_kind_name(KINDS["v1", "Pod"]) == "Pod"
    assert get_kind_name(KINDS["scheduling.x-k8s.io/v1alpha1", "PodGroup"]) == "PodGroup"
    assert KINDS["scheduling.x-k8s.io/v1alpha1", "PodGroup"] is not KINDS["scheduling.k8s.io/v1beta1", "PodGroup"]
