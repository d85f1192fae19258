"""Volumes of in-tree drivers are translated to their CSI drivers."""

from typing import Any

import pytest

from extender.api.codec import from_builtins
from extender.api.kinds.storage import CSINode, PersistentVolume
from extender.api.kinds.volumes import Volume
from extender.volumes.csi_migration import (
    TranslationError,
    find_in_tree_driver,
    get_inline_csi_handle,
    get_persistent_volume_csi_handle,
    have_migrated_plugins_changed,
    translate_node_affinity,
)

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def make_volume(spec: dict[str, Any], labels: dict[str, str] | None = None) -> PersistentVolume:
    return from_builtins({"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}, PersistentVolume)


@pytest.mark.parametrize(
    ("spec", "labels", "handle"),
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "vol-1", id="a bare EBS id"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}}, {}, "vol-1", id="an EBS id with its zone"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws:///vol-1/"}}, {}, "vol-1", id="an EBS id without a zone"
        ),
        pytest.param({"azureDisk": {"diskURI": "/u", "kind": "managed"}}, {}, "/u", id="a managed Azure disk"),
        pytest.param({"cinder": {"volumeID": "c"}}, {}, "c", id="a Cinder volume"),
        pytest.param({"portworxVolume": {"volumeID": "p"}}, {}, "p", id="a Portworx volume"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {},
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="a GCE disk in an unknown zone",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "e-w-b", BETA_ZONE: "e-w-a"},
            "projects/UNSPECIFIED/zones/e-w-a/disks/d",
            id="a GCE disk in a zone, the beta label first",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "e-w-a__e-w-b"},
            "projects/UNSPECIFIED/regions/e-w/disks/d",
            id="a GCE disk in several zones of a region",
        ),
        pytest.param({"azureFile": {"shareName": "s"}}, {}, None, id="a share of a driver that is not migrated"),
    ],
)
def test_a_persistent_volume_has_the_handle(spec: dict[str, Any], labels: dict[str, str], handle: str | None) -> None:
    assert get_persistent_volume_csi_handle(make_volume(spec, labels)) == handle


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        pytest.param({"awsElasticBlockStore": {"volumeID": "aws://a/disk-1"}}, {}, id="an EBS id of an unknown form"),
        pytest.param({"azureDisk": {"diskURI": "/u", "kind": "Dedicated"}}, {}, id="an Azure disk that is not managed"),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "e-w-a__e-x-a"}, id="zones of two regions"),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a__b"}, id="zones of an unknown form"),
    ],
)
def test_a_persistent_volume_cannot_be_translated(spec: dict[str, Any], labels: dict[str, str]) -> None:
    with pytest.raises(TranslationError):
        get_persistent_volume_csi_handle(make_volume(spec, labels))


def test_an_inline_gce_disk_is_in_an_unknown_zone() -> None:
    volume = from_builtins({"name": "v", "gcePersistentDisk": {"pdName": "d"}}, Volume)
    assert get_inline_csi_handle(volume) == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"


def make_node_affinity(*rules: tuple[str, str]) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in rules]
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.mark.parametrize(
    ("spec", "labels", "rules"),
    [
        pytest.param(EBS, {}, None, id="a volume without affinity and labels"),
        pytest.param(
            {**EBS, "nodeAffinity": make_node_affinity((ZONE, "a"), ("disk", "ssd"))},
            {ZONE: "ignored"},
            [(EBS_ZONE, "a"), ("disk", "ssd")],
            id="a requirement on the zone uses the driver's label",
        ),
        pytest.param(
            {**EBS, "nodeAffinity": make_node_affinity((BETA_ZONE, "a"), (BETA_REGION, "r"))},
            {},
            [(EBS_ZONE, "a"), (REGION, "r")],
            id="beta labels are replaced, also of the region",
        ),
        pytest.param(
            {**EBS, "nodeAffinity": make_node_affinity(("disk", "ssd"))},
            {ZONE: "b__ a__"},
            [("disk", "ssd"), (EBS_ZONE, "a,b")],
            id="zone labels of the volume become a requirement of every term",
        ),
        pytest.param(EBS, {BETA_ZONE: "a"}, [(EBS_ZONE, "a")], id="zone labels alone make a term"),
        pytest.param(
            {"azureDisk": {"diskURI": "u"}, "nodeAffinity": make_node_affinity((ZONE, "a"))},
            {},
            [(ZONE, "a")],
            id="Azure does not change node affinity",
        ),
    ],
)
def test_node_affinity_is_translated(
    spec: dict[str, Any], labels: dict[str, str], rules: list[tuple[str, str]] | None
) -> None:
    volume = make_volume(spec, labels)
    driver = find_in_tree_driver(volume.spec)
    assert driver is not None
    selector = translate_node_affinity(volume, driver)
    if rules is None:
        assert selector is None
    else:
        assert selector is not None
        (term,) = selector.node_selector_terms
        assert [(rule.key, ",".join(rule.values)) for rule in term.match_expressions] == rules


def test_an_empty_list_of_migrated_plugins_is_the_same_as_none() -> None:
    none, empty, some = (
        from_builtins({"metadata": {"name": "node-1", "annotations": annotations}}, CSINode)
        for annotations in (
            {},
            {"storage.alpha.kubernetes.io/migrated-plugins": ""},
            {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder"},
        )
    )
    assert not have_migrated_plugins_changed(none, empty)
    assert have_migrated_plugins_changed(none, some)
