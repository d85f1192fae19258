"""How many disks of one in-tree driver each node holds, and how many it takes: what the old volume limits compare.

Source: C036 to C041.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.pods import PodQuery
from extender.cluster.snapshot import NodeView, Snapshot
from extender.objects.node import Node
from extender.objects.pod import Pod
from extender.objects.quantity import base_units
from extender.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
)
from extender.objects.volumes import Volume
from extender.volumes.claims import claim_class
from extender.volumes.migration import migrated_plugins

ENVIRONMENT: Final = "KUBE_MAX_PD_VOLS"
"""The environment variable that replaces the default limit of every driver. Source: C041."""

_NITRO: Final = re.compile(r"^[cmr]5.*|t3|z1d")
_NITRO_LIMIT: Final = 25
_EBS_LIMIT: Final = 39
_INSTANCE_TYPES: Final = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_READ: Final = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode)


def environment_fault(environment: Mapping[str, str] | None = None) -> str | None:
    """What is wrong with the limit that the environment sets, which then does not hold; None if nothing is.

    Source: C041.
    """
    text = (os.environ if environment is None else environment).get(ENVIRONMENT, "")
    if not text or limit_of_environment(environment) is not None:
        return None
    return f'{ENVIRONMENT}="{text}": want a whole number above 0; the default limits hold'


@dataclass(frozen=True, slots=True)
class LimitedDriver:
    """An in-tree driver with a limit.

    Attributes:
        provisioner: its name in storage classes.
        resource: the allocatable resource of nodes that states their limit.
        disk_of: the name of the disk that a volume is, or None if it is of another driver.
        default_limit: the limit of a node that states none.
    """

    provisioner: str
    resource: str
    disk_of: Callable[[Volume | PersistentVolumeSpec], str | None]
    default_limit: Callable[[Node], int]


def _ebs(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.aws_elastic_block_store
    return None if disk is None else disk.volume_id


def _gce(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.gce_persistent_disk
    return None if disk is None else disk.pd_name


def _azure(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.azure_disk
    return None if disk is None else disk.disk_name


def _cinder(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.cinder
    return None if disk is None else disk.volume_id


def _ebs_limit(node: Node) -> int:
    """39, and 25 for the instance types of the Nitro system. Source: C036."""
    labels = node.metadata.labels
    kind = next((labels[key] for key in _INSTANCE_TYPES if key in labels), "")
    return _NITRO_LIMIT if _NITRO.search(kind) else _EBS_LIMIT


EBS: Final = LimitedDriver("kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", _ebs, _ebs_limit)
GCE_PD: Final = LimitedDriver("kubernetes.io/gce-pd", "attachable-volumes-gce-pd", _gce, lambda _: 16)
AZURE_DISK: Final = LimitedDriver("kubernetes.io/azure-disk", "attachable-volumes-azure-disk", _azure, lambda _: 16)
CINDER: Final = LimitedDriver("kubernetes.io/cinder", "attachable-volumes-cinder", _cinder, lambda _: 256)


def limit_of_environment(environment: Mapping[str, str] | None = None) -> int | None:
    """The limit that the environment sets for all drivers; None if it sets none or something that is no limit.

    Args:
        environment: variables by name; None means those of the process.

    Source: C041.
    """
    text = (os.environ if environment is None else environment).get(ENVIRONMENT, "").strip()
    if not re.fullmatch(r"\+?[0-9]+", text, re.ASCII):
        return None
    return int(text) or None


_UNLIMITED: Final = 1 << 40


class InTreeLimits:
    """The disks of one driver by node, kept between calls and read again where something was written.

    Not thread-safe; belongs to one plugin.
    """

    __slots__ = (
        "_counts",
        "_disks_of",
        "_driver",
        "_forced",
        "_holders",
        "_limits",
        "_lineage",
        "_node_position",
        "_pod_position",
        "_revisions",
    )

    def __init__(self, driver: LimitedDriver, forced: int | None = None) -> None:
        """Begin with nothing known.

        Args:
            driver: whose disks count.
            forced: the limit of nodes that state none, instead of the driver's own.
        """
        self._driver, self._forced = driver, forced
        self._disks_of: dict[int, frozenset[str]] = {}
        self._holders: dict[str, set[int]] = {}
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        self._limits: IntArray = np.empty(0, dtype=np.int64)
        self._lineage: object = None
        self._revisions: object = None
        self._node_position = self._pod_position = 0

    def exceeded(self, pod: PodQuery, nodes: NodeView) -> BoolArray | None:
        """Where the disks of *pod* would be too many: bool, shape (len(nodes),); None if it has none of the driver.

        Nodes that say they migrated the driver are left to the limits of its CSI driver.
        """
        cluster = nodes.snapshot
        wanted = frozenset(self._disks(pod.pod, cluster)) if pod.spec.volumes else frozenset()
        if not wanted:
            return None
        self._catch_up(cluster)
        for row in range(len(cluster)) if nodes.rows is None else nodes.rows.tolist():
            if row not in self._disks_of:
                self._read(row, cluster)
        new = np.full(len(cluster), len(wanted), dtype=np.int64)
        for disk in wanted:
            new[list(self._holders.get(disk, ()))] -= 1
        full: BoolArray = nodes.take(self._counts + new > self._limits)
        return full

    def _catch_up(self, cluster: Snapshot) -> None:
        """Forget the rows that may have changed since the last call."""
        revisions = (cluster.object_history, *map(cluster.revision, _READ))
        rows = None
        if cluster.lineage is self._lineage and revisions == self._revisions:
            rows = cluster.changed_rows(node_position=self._node_position, pod_position=self._pod_position)
        if rows is None:
            self._disks_of, self._holders = {}, {}
        else:
            for row in rows.tolist():
                for disk in self._disks_of.pop(row, ()):
                    self._holders[disk].discard(row)
        if len(self._counts) != len(cluster):
            self._counts, self._limits = (
                np.resize(array, len(cluster)) if len(array) else np.zeros(len(cluster), dtype=np.int64)
                for array in (self._counts, self._limits)
            )
        self._lineage, self._revisions = cluster.lineage, revisions
        self._node_position, self._pod_position = cluster.node_position, cluster.pod_position

    def _read(self, row: int, cluster: Snapshot) -> None:
        """What the node in *row* holds and how many it takes."""
        node = cluster.nodes[row]
        pods = cluster.pods_on(node.metadata.name).values()
        disks = frozenset(disk for each in pods if each.pod.spec.volumes for disk in self._disks(each.pod, cluster))
        csi_node = cluster.find(CSINode, node.metadata.name)
        migrated = csi_node is not None and self._driver.provisioner in migrated_plugins(csi_node)
        self._disks_of[row] = disks
        for disk in disks:
            self._holders.setdefault(disk, set()).add(row)
        self._counts[row] = len(disks)
        self._limits[row] = _UNLIMITED if migrated else self._limit(node)

    def _limit(self, node: Node) -> int:
        stated = node.status.allocatable.get(self._driver.resource)
        if stated is not None:
            return base_units(self._driver.resource, stated)
        return self._forced or self._driver.default_limit(node)

    def _disks(self, pod: Pod, cluster: Snapshot) -> Iterator[str]:
        """The disks of *pod* that count; a claim without a volume counts under a name no disk can have."""
        meta = pod.metadata
        for volume in pod.spec.volumes:
            disk = self._driver.disk_of(volume)
            if disk is not None:
                yield disk
                continue
            name = ""
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
            elif volume.ephemeral is not None:
                name = f"{meta.name}-{volume.name}"
            claim = cluster.find(PersistentVolumeClaim, f"{meta.namespace}/{name}") if name else None
            if claim is None:
                continue
            bound = cluster.find(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
            if bound is not None:
                disk = self._driver.disk_of(bound.spec)
                if disk is not None:
                    yield disk
            elif self._is_provisioned(claim, cluster):
                yield f"\0{claim.key}"

    def _is_provisioned(self, claim: PersistentVolumeClaim, cluster: Snapshot) -> bool:
        storage_class = cluster.find(StorageClass, claim_class(claim))
        return storage_class is not None and storage_class.provisioner == self._driver.provisioner
