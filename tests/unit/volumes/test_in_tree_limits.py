"""Limits of in-tree drivers: the defaults, the environment, and the cache between calls."""

from typing import Any

import pytest

from extender.cache.cache import Cache
from extender.volumes.in_tree_limits import (
    AZURE_DISK,
    CINDER,
    EBS,
    GCE_PD,
    LIMIT_VARIABLE,
    DiskLimitChecker,
    LimitedDriver,
    get_limit_variable_error,
    read_environment_limit,
)
from tests.build import make_cluster, make_node, make_object, make_pod, make_pod_info

SOURCES = {
    EBS.provisioner: ("awsElasticBlockStore", "volumeID"),
    GCE_PD.provisioner: ("gcePersistentDisk", "pdName"),
    AZURE_DISK.provisioner: ("azureDisk", "diskName"),
    CINDER.provisioner: ("cinder", "volumeID"),
}


def make_spec_with_disks(driver: LimitedDriver, *names: str) -> dict[str, Any]:
    """Return the spec of a pod with these disks."""
    source, name_field = SOURCES[driver.provisioner]
    return {"volumes": [{"name": f"v{name}", source: {name_field: name}} for name in names]}


def make_cluster_with_disks(driver: LimitedDriver, count: int, labels: dict[str, str] | None = None) -> Cache:
    """Make a cluster of the node `a`, with a pod that has *count* disks."""
    assigned_pod = make_pod("p", node="a", spec=make_spec_with_disks(driver, *map(str, range(count))))
    return make_cluster(make_node("a", labels=labels), assigned_pod)


def exceeds_limit(limits: DiskLimitChecker, cache: Cache, driver: LimitedDriver) -> bool:
    """Whether a pod with one more disk exceeds the limit of `a`."""
    pod = make_pod_info(make_pod(spec=make_spec_with_disks(driver, "new")), cache)
    over_limit = limits.find_nodes_over_limit(pod, cache.snapshot().view())
    assert over_limit is not None
    return bool(over_limit[0])


@pytest.mark.parametrize(
    ("driver", "labels", "limit"),
    [
        pytest.param(EBS, {}, 39, id="EBS: 39"),
        pytest.param(EBS, {"beta.kubernetes.io/instance-type": "m5.large"}, 25, id="EBS on a Nitro node: 25"),
        pytest.param(EBS, {"node.kubernetes.io/instance-type": "x.t3"}, 25, id="t3 anywhere in the name"),
        pytest.param(EBS, {"node.kubernetes.io/instance-type": "m4.large"}, 39, id="EBS on an older node: 39"),
        pytest.param(GCE_PD, {}, 16, id="GCE persistent disks: 16"),
        pytest.param(AZURE_DISK, {}, 16, id="Azure disks: 16"),
        pytest.param(CINDER, {}, 256, id="Cinder: 256"),
    ],
)
def test_a_node_that_sets_no_limit_has_the_default_limit_of_the_driver(
    driver: LimitedDriver, labels: dict[str, str], limit: int
) -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxEBSVolume (1.21)."""
    assert exceeds_limit(DiskLimitChecker(driver), make_cluster_with_disks(driver, limit, labels), driver)
    assert not exceeds_limit(DiskLimitChecker(driver), make_cluster_with_disks(driver, limit - 1, labels), driver)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("5", 5), (" 12 ", 12), ("0", None), ("-3", None), ("many", None), ("", None), ("1.5", None)],
    ids=["a number", "a number in blanks", "zero", "a negative number", "a word", "nothing", "a fraction"],
)
def test_the_environment_sets_a_limit_if_it_is_a_whole_number_above_0(text: str, limit: int | None) -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21)."""
    assert read_environment_limit({LIMIT_VARIABLE: text}) == limit


def test_an_invalid_limit_of_the_environment_is_an_error() -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21)."""
    message = 'KUBE_MAX_PD_VOLS="many": expected a whole number above 0; using the default limits'
    assert get_limit_variable_error({LIMIT_VARIABLE: "many"}) == message
    assert [
        get_limit_variable_error(environment) for environment in ({}, {LIMIT_VARIABLE: ""}, {LIMIT_VARIABLE: "7"})
    ] == [
        None,
        None,
        None,
    ]


def test_the_limit_of_the_environment_overrides_the_default_but_not_the_limit_of_the_node() -> None:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21)."""
    without_limit = make_cluster_with_disks(EBS, 2)
    with_limit = make_cluster(
        make_node("a", allocatable={"attachable-volumes-aws-ebs": "9"}),
        make_pod("p", node="a", spec=make_spec_with_disks(EBS, "0", "1")),
    )
    assert exceeds_limit(DiskLimitChecker(EBS, limit_override=2), without_limit, EBS)
    assert not exceeds_limit(DiskLimitChecker(EBS, limit_override=2), with_limit, EBS)


def test_the_cache_follows_pods_nodes_and_claims() -> None:
    limits = DiskLimitChecker(GCE_PD)
    cache = make_cluster_with_disks(GCE_PD, 15)
    assert not exceeds_limit(limits, cache, GCE_PD)
    cache.add_or_update_pod(
        make_pod("q", node="a", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]})
    )
    assert not exceeds_limit(limits, cache, GCE_PD)
    cache.add_or_update_object(
        make_object(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
            | {"spec": {"volumeName": "pv"}}
        )
    )
    assert not exceeds_limit(limits, cache, GCE_PD)
    volume = {"metadata": {"name": "pv"}, "spec": {"gcePersistentDisk": {"pdName": "x"}}}
    cache.add_or_update_object(make_object({"apiVersion": "v1", "kind": "PersistentVolume", **volume}))
    assert exceeds_limit(limits, cache, GCE_PD)
    cache.add_or_update_node(make_node("a", allocatable={"attachable-volumes-gce-pd": "17"}))
    assert not exceeds_limit(limits, cache, GCE_PD)
    cache.add_or_update_node(make_node("a"))
    cache.remove_pod("uid-default-p")
    assert not exceeds_limit(limits, cache, GCE_PD)
