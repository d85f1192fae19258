"""Making volumes for claims: on which nodes the driver of their class can, and has storage left. Source: B096."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.cluster.arrays import BoolArray, IntArray
from extender.cluster.snapshot import Snapshot
from extender.objects.quantity import value
from extender.objects.storage import CSIDriver, PersistentVolumeClaim, StorageClass
from extender.volumes.claims import claim_class, requested_storage
from extender.volumes.places import Places
from extender.volumes.stock import Pool, Stock

NO_POOL = -1
"""The storage left is not known, or does not matter."""

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim that a volume is made for on some nodes.

    Attributes:
        claim: the claim.
        places: where a volume would be made, bool, one entry a place.
        pools: what can be made where.
        pool: the index of the pool in `pools` that it would be taken from, or `NO_POOL`; int64, one entry a place.
    """

    claim: PersistentVolumeClaim
    places: BoolArray
    pools: Sequence[Pool]
    pool: IntArray


@dataclass(frozen=True, slots=True)
class Provisions:
    """What can be made where; masks are bool, one entry a place.

    Attributes:
        made: the claims in the order in which they were looked at, each only where nothing failed before it.
        impossible: no volume can be made for some claim.
        too_little: there is not enough storage left for some claim.
        faults: a claim that cannot be judged, and why.
    """

    made: tuple[Provision, ...]
    impossible: BoolArray
    too_little: BoolArray
    faults: tuple[tuple[BoolArray, str], ...]


def provision(
    claims: Sequence[tuple[PersistentVolumeClaim, BoolArray]], places: Places, cluster: Snapshot, stock: Stock
) -> Provisions:
    """Look where volumes for *claims* can be made; the first claim that fails at a place says why.

    Args:
        claims: each with the places where it needs a volume made.
        places: of the nodes.
        cluster: with classes and drivers.
        stock: what storage is left.
    """
    size = len(places)
    impossible, too_little = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    failed = np.zeros(size, dtype=np.bool_)
    made: list[Provision] = []
    faults: list[tuple[BoolArray, str]] = []
    for claim, needed in claims:
        here = needed & ~failed
        if not here.any():
            continue
        found = _class(claim, cluster)
        if isinstance(found, str):
            faults.append((here, found))
            failed |= here
            continue
        able = _able(found, places) & here
        impossible |= here & ~able
        pools, pool, enough = _storage(claim, found, places, cluster, stock, able)
        too_little |= able & ~enough
        failed |= here & ~(able & enough)
        made.append(Provision(claim, able & enough, pools, pool))
    return Provisions(tuple(made), impossible, too_little, tuple(faults))


def _class(claim: PersistentVolumeClaim, cluster: Snapshot) -> StorageClass | str:
    name = claim_class(claim)
    if not name:
        return f'no class for claim "{claim.key}"'
    return cluster.find(StorageClass, name) or f'failed to find storage class "{name}"'


def _able(storage_class: StorageClass, places: Places) -> BoolArray:
    able = np.zeros(len(places), dtype=np.bool_)
    if storage_class.provisioner not in {"", _NO_PROVISIONER}:
        able[places.of_topologies(storage_class.allowed_topologies)] = True
    return able


def _storage(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    places: Places,
    cluster: Snapshot,
    stock: Stock,
    able: BoolArray,
) -> tuple[Sequence[Pool], IntArray, BoolArray]:
    """The pools of the class, the first that suffices at each place, and where the storage does."""
    pool = np.full(len(places), NO_POOL, dtype=np.int64)
    request = requested_storage(claim)
    driver = cluster.find(CSIDriver, storage_class.provisioner)
    if request is None or driver is None or not driver.spec.storage_capacity:
        return (), pool, np.ones(len(places), dtype=np.bool_)
    pools = stock.pools(cluster, storage_class.metadata.name)
    left = able.copy()
    amount = value(request)
    for number, each in enumerate(pools):
        if each.most is None or each.most < amount:
            continue
        where = places.of_selector(each.selector)
        where = where[left[where]]
        if len(where):
            pool[where] = number
            left[where] = False
            if not left.any():
                break
    return pools, pool, pool != NO_POOL
