"""Limits of in-tree disks: what a node takes that says nothing itself, and what is kept between questions."""

from typing import Any

import pytest

from extender.cluster.state import ClusterState
from extender.volumes.in_tree_limits import (
    AZURE_DISK,
    CINDER,
    EBS,
    ENVIRONMENT,
    GCE_PD,
    InTreeLimits,
    LimitedDriver,
    environment_fault,
    limit_of_environment,
)
from tests.build import a_cluster, a_node, a_pod, a_query, an_object

SOURCES = {
    EBS.provisioner: ("awsElasticBlockStore", "volumeID"),
    GCE_PD.provisioner: ("gcePersistentDisk", "pdName"),
    AZURE_DISK.provisioner: ("azureDisk", "diskName"),
    CINDER.provisioner: ("cinder", "volumeID"),
}


def disks(driver: LimitedDriver, *names: str) -> dict[str, Any]:
    """The spec of a pod with these disks."""
    source, identity = SOURCES[driver.provisioner]
    return {"volumes": [{"name": f"v{name}", source: {identity: name}} for name in names]}


def holding(driver: LimitedDriver, count: int, labels: dict[str, str] | None = None) -> ClusterState:
    """A cluster of the node `a`, on which a pod has that many disks."""
    placed = a_pod("p", node="a", spec=disks(driver, *map(str, range(count))))
    return a_cluster(a_node("a", labels=labels), placed)


def is_full(limits: InTreeLimits, state: ClusterState, driver: LimitedDriver) -> bool:
    """Whether `a` takes no pod with a disk more."""
    full = limits.exceeded(a_query(a_pod(spec=disks(driver, "new")), state), state.snapshot().view())
    assert full is not None
    return bool(full[0])


@pytest.mark.parametrize(
    ("driver", "labels", "most"),
    [
        pytest.param(EBS, {}, 39, id="EBS: 39"),
        pytest.param(EBS, {"beta.kubernetes.io/instance-type": "m5.large"}, 25, id="EBS on a Nitro node: 25"),
        pytest.param(EBS, {"node.kubernetes.io/instance-type": "x.t3"}, 25, id="t3 counts anywhere in the name"),
        pytest.param(EBS, {"node.kubernetes.io/instance-type": "m4.large"}, 39, id="EBS on an older node: 39"),
        pytest.param(GCE_PD, {}, 16, id="GCE persistent disks: 16"),
        pytest.param(AZURE_DISK, {}, 16, id="Azure disks: 16"),
        pytest.param(CINDER, {}, 256, id="Cinder: 256"),
    ],
)
def test_a_node_that_states_no_limit_has_that_of_the_driver(
    driver: LimitedDriver, labels: dict[str, str], most: int
) -> None:
    """C036 to C039."""
    assert is_full(InTreeLimits(driver), holding(driver, most, labels), driver)
    assert not is_full(InTreeLimits(driver), holding(driver, most - 1, labels), driver)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("5", 5), (" 12 ", 12), ("0", None), ("-3", None), ("many", None), ("", None), ("1.5", None)],
    ids=["a number", "a number in blanks", "zero", "a negative number", "a word", "nothing", "a fraction"],
)
def test_the_environment_sets_a_limit_if_it_is_a_whole_number_above_0(text: str, limit: int | None) -> None:
    """C041."""
    assert limit_of_environment({ENVIRONMENT: text}) == limit


def test_an_environment_that_sets_no_limit_though_it_means_to_is_told() -> None:
    """C041."""
    want = 'KUBE_MAX_PD_VOLS="many": want a whole number above 0; the default limits hold'
    assert environment_fault({ENVIRONMENT: "many"}) == want
    assert [environment_fault(each) for each in ({}, {ENVIRONMENT: ""}, {ENVIRONMENT: "7"})] == [None, None, None]


def test_the_limit_of_the_environment_goes_before_the_driver_s_and_after_the_node_s() -> None:
    """C041."""
    silent = holding(EBS, 2)
    stated = a_cluster(
        a_node("a", allocatable={"attachable-volumes-aws-ebs": "9"}), a_pod("p", node="a", spec=disks(EBS, "0", "1"))
    )
    assert is_full(InTreeLimits(EBS, forced=2), silent, EBS)
    assert not is_full(InTreeLimits(EBS, forced=2), stated, EBS)


def test_what_is_kept_follows_pods_nodes_and_claims() -> None:
    limits = InTreeLimits(GCE_PD)
    state = holding(GCE_PD, 15)
    assert not is_full(limits, state, GCE_PD)
    state.put_pod(a_pod("q", node="a", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}))
    assert not is_full(limits, state, GCE_PD)
    state.put_object(
        an_object(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
            | {"spec": {"volumeName": "pv"}}
        )
    )
    assert not is_full(limits, state, GCE_PD)
    volume = {"metadata": {"name": "pv"}, "spec": {"gcePersistentDisk": {"pdName": "x"}}}
    state.put_object(an_object({"apiVersion": "v1", "kind": "PersistentVolume", **volume}))
    assert is_full(limits, state, GCE_PD)
    state.put_node(a_node("a", allocatable={"attachable-volumes-gce-pd": "17"}))
    assert not is_full(limits, state, GCE_PD)
    state.put_node(a_node("a"))
    state.drop_pod("uid-default-p")
    assert not is_full(limits, state, GCE_PD)
