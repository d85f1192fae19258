"""Limits of the disks of an in-tree driver on each node.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxEBSVolume, defaultMaxGCEPDVolumes,
defaultMaxAzureDiskVolumes (1.21); pkg/scheduler/algorithm/predicates/csi_volume_predicate.go,
CSIMaxVolumeLimitChecker.attachableLimitPredicate (1.14).
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.api.kinds.node import Node
from extender.api.kinds.pod import Pod
from extender.api.kinds.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
)
from extender.api.kinds.volumes import Volume
from extender.api.quantity import to_base_units
from extender.cache.pod_info import PodInfo
from extender.cache.snapshot import NodeView, Snapshot
from extender.cache.tables.arrays import BoolArray, IntArray
from extender.cache.tables.history import HistoryPosition
from extender.cache.tables.volume_uses import find_pvc_use
from extender.volumes.claims import get_claim_class
from extender.volumes.csi_migration import get_migrated_plugins

LIMIT_VARIABLE: Final = "KUBE_MAX_PD_VOLS"
"""The environment variable that overrides the default limit of every driver.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21).
"""

_NITRO_PATTERN: Final = re.compile(r"^[cmr]5.*|t3|z1d")
_NITRO_LIMIT: Final = 25
_EBS_LIMIT: Final = 39
_INSTANCE_TYPE_LABELS: Final = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_KINDS: Final = (PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode)


def get_limit_variable_error(environment: Mapping[str, str] | None = None) -> str | None:
    """Return an error message if the limit in the environment is invalid and therefore ignored, else None.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21).
    """
    limit_text = (os.environ if environment is None else environment).get(LIMIT_VARIABLE, "")
    if not limit_text or read_environment_limit(environment) is not None:
        return None
    return f'{LIMIT_VARIABLE}="{limit_text}": expected a whole number above 0; using the default limits'


@dataclass(frozen=True, slots=True)
class LimitedDriver:
    """An in-tree driver with a limit.

    Attributes:
        provisioner: the driver's name in storage classes.
        resource: the allocatable resource that contains the limit of a node.
        source_field: the field of `Volume` and `PersistentVolumeSpec` for volumes of the driver.
        name_field: the field of this volume source with the name of the disk.
        get_default_limit: the function that returns the limit of a node whose allocatable lacks `resource`.
    """

    provisioner: str
    resource: str
    source_field: str
    name_field: str
    get_default_limit: Callable[[Node], int]

    def get_disk_name(self, source: Volume | PersistentVolumeSpec) -> str | None:
        """Return the name of a volume's disk; None for volumes of other drivers."""
        disk = getattr(source, self.source_field)
        return None if disk is None else getattr(disk, self.name_field)


def _get_default_ebs_limit(node: Node) -> int:
    """Return 39, or 25 for AWS Nitro instance types.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxEBSVolume (1.21).
    """
    labels = node.metadata.labels
    instance_type = next((labels[key] for key in _INSTANCE_TYPE_LABELS if key in labels), "")
    return _NITRO_LIMIT if _NITRO_PATTERN.search(instance_type) else _EBS_LIMIT


EBS: Final = LimitedDriver(
    "kubernetes.io/aws-ebs",
    "attachable-volumes-aws-ebs",
    "aws_elastic_block_store",
    "volume_id",
    _get_default_ebs_limit,
)
GCE_PD: Final = LimitedDriver(
    "kubernetes.io/gce-pd", "attachable-volumes-gce-pd", "gce_persistent_disk", "pd_name", lambda _: 16
)
AZURE_DISK: Final = LimitedDriver(
    "kubernetes.io/azure-disk", "attachable-volumes-azure-disk", "azure_disk", "disk_name", lambda _: 16
)
CINDER: Final = LimitedDriver("kubernetes.io/cinder", "attachable-volumes-cinder", "cinder", "volume_id", lambda _: 256)


def read_environment_limit(environment: Mapping[str, str] | None = None) -> int | None:
    """Return the limit that the environment sets for all drivers; None if it is missing or invalid.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go, getMaxVolLimitFromEnv (1.21).
    """
    limit_text = (os.environ if environment is None else environment).get(LIMIT_VARIABLE, "").strip()
    if not re.fullmatch(r"\+?[0-9]+", limit_text, re.ASCII):
        return None
    return int(limit_text) or None


_UNLIMITED: Final = 1 << 40


class DiskLimitChecker:
    """Compares the number of disks of one driver on each node with the node's limit.

    Counts and limits are cached and updated incrementally. Each plugin has its own checker. It is not thread-safe.
    """

    def __init__(self, driver: LimitedDriver, limit_override: int | None = None) -> None:
        """Start with an empty cache.

        *limit_override* overrides the default limit of the driver whose disks count.
        """
        self._driver, self._limit_override = driver, limit_override
        self._disks_by_row: dict[int, frozenset[str]] = {}
        self._rows_by_disk: dict[str, set[int]] = {}
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        self._limits: IntArray = np.empty(0, dtype=np.int64)
        self._position: HistoryPosition | None = None
        self._versions: tuple[object, ...] = ()

    def find_nodes_over_limit(self, pod: PodInfo, nodes: NodeView) -> BoolArray | None:
        """Find the nodes whose limit the disks of *pod* would exceed; None if the pod has no disks of the driver.

        Nodes that migrated the driver have no limit here, since the limit of its CSI driver applies.

        Returns:
            bool, shape (len(nodes),).
        """
        snapshot = nodes.snapshot
        pod_disks = frozenset(self._iter_pod_disks(pod.pod, snapshot)) if pod.spec.volumes else frozenset()
        if not pod_disks:
            return None
        self._drop_stale_rows(snapshot)
        for row in range(len(snapshot)) if nodes.rows is None else nodes.rows.tolist():
            if row not in self._disks_by_row:
                self._read_node(row, snapshot)
        new_disks = np.full(len(snapshot), len(pod_disks), dtype=np.int64)
        for disk in pod_disks:
            new_disks[list(self._rows_by_disk.get(disk, ()))] -= 1
        over_limit: BoolArray = nodes.take(self._counts + new_disks > self._limits)
        return over_limit

    def _drop_stale_rows(self, snapshot: Snapshot) -> None:
        """Drop the rows that may have changed since the last call."""
        versions = tuple(map(snapshot.kind_version, _KINDS))
        changed_rows = None
        if self._position is not None and versions == self._versions and len(self._counts) == len(snapshot):
            changed_rows = snapshot.find_changed_rows(self._position)
        if changed_rows is None:
            self._disks_by_row, self._rows_by_disk = {}, {}
            self._counts, self._limits = np.zeros((2, len(snapshot)), dtype=np.int64)
        else:
            for row in changed_rows.tolist():
                for disk in self._disks_by_row.pop(row, ()):
                    self._rows_by_disk[disk].discard(row)
        self._position, self._versions = snapshot.position, versions

    def _read_node(self, row: int, snapshot: Snapshot) -> None:
        node = snapshot.nodes[row]
        pods = snapshot.pods_on(node.metadata.name).values()
        disks = frozenset(
            disk for pod in pods if pod.pod.spec.volumes for disk in self._iter_pod_disks(pod.pod, snapshot)
        )
        csi_node = snapshot.get_object(CSINode, node.metadata.name)
        is_migrated = csi_node is not None and self._driver.provisioner in get_migrated_plugins(csi_node)
        self._disks_by_row[row] = disks
        for disk in disks:
            self._rows_by_disk.setdefault(disk, set()).add(row)
        self._counts[row] = len(disks)
        self._limits[row] = _UNLIMITED if is_migrated else self._get_node_limit(node)

    def _get_node_limit(self, node: Node) -> int:
        node_limit = node.status.allocatable.get(self._driver.resource)
        if node_limit is not None:
            return to_base_units(self._driver.resource, node_limit)
        return self._limit_override or self._driver.get_default_limit(node)

    def _iter_pod_disks(self, pod: Pod, snapshot: Snapshot) -> Iterator[str]:
        """Yield the names of the pod's disks. An unbound claim yields a placeholder, which is no valid disk name."""
        meta = pod.metadata
        for volume in pod.spec.volumes:
            disk = self._driver.get_disk_name(volume)
            if disk is not None:
                yield disk
                continue
            use = find_pvc_use(volume)
            claim_name = use.get_claim_name(meta.name) if use is not None else ""
            claim = snapshot.get_object(PersistentVolumeClaim, f"{meta.namespace}/{claim_name}") if claim_name else None
            if claim is None:
                continue
            bound_volume = snapshot.get_object(PersistentVolume, claim.spec.volume_name)
            if bound_volume is not None:
                disk = self._driver.get_disk_name(bound_volume.spec)
                if disk is not None:
                    yield disk
            elif self._matches_provisioner(claim, snapshot):
                yield f"\0{claim.key}"

    def _matches_provisioner(self, claim: PersistentVolumeClaim, snapshot: Snapshot) -> bool:
        storage_class = snapshot.get_object(StorageClass, get_claim_class(claim))
        return storage_class is not None and storage_class.provisioner == self._driver.provisioner
