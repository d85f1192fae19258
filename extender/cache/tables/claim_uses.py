"""The pods that take node resources through a resource claim, by node (gate DRANodeAllocatableResources).

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures (1.36).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from extender.api.kinds.pod import Pod
from extender.basics.copy_on_write import CopyOnWriteDict

_UidsByRow: TypeAlias = dict[int, frozenset[str]]

_NO_USERS: Final[Mapping[int, frozenset[str]]] = MappingProxyType({})


class ResourceClaimUseTable:
    """The pods that take node resources through each resource claim, by claim key and node row."""

    __slots__ = ("_users",)

    def __init__(self) -> None:
        self._users: CopyOnWriteDict[str, _UidsByRow] = CopyOnWriteDict(dict)

    def fork(self) -> "ResourceClaimUseTable":
        """Return a copy-on-write copy of the table."""
        child = object.__new__(ResourceClaimUseTable)
        child._users = self._users.fork()
        return child

    def add_or_remove(self, pod: Pod, uid: str, row: int, sign: int) -> None:
        """Add *pod* to *row* (*sign* 1) or remove it (-1)."""
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            uids_by_row = self._users.get_writable(key, dict)
            user_uids = uids_by_row.get(row, frozenset())
            user_uids = user_uids | {uid} if sign > 0 else user_uids - {uid}
            if user_uids:
                uids_by_row[row] = user_uids
            else:
                uids_by_row.pop(row, None)
                if not uids_by_row:
                    self._users.remove(key)

    def get_users(self, key: str) -> Mapping[int, frozenset[str]]:
        """Return, by row, the uids of the pods that take node resources through the claim *key* (`namespace/name`)."""
        return self._users.get(key) or _NO_USERS
