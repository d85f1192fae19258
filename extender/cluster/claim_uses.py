"""Which pods take node resources through a claim, node by node (gate DRANodeAllocatableResources). Source: B122."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from extender.basics.cow import CowDict
from extender.objects.pod import Pod

_Rows: TypeAlias = dict[int, frozenset[str]]
"""Rows with the uids of the pods there."""

_NOBODY: Final[Mapping[int, frozenset[str]]] = MappingProxyType({})


class ClaimTable:
    """Claims to the pods that take node resources through them."""

    __slots__ = ("_users",)

    def __init__(self) -> None:
        self._users: CowDict[str, _Rows] = CowDict(dict)

    def fork(self) -> "ClaimTable":
        """The same uses, to be written without touching these."""
        child = object.__new__(ClaimTable)
        child._users = self._users.fork()
        return child

    def count(self, pod: Pod, uid: str, row: int, sign: int) -> None:
        """*pod* comes to *row* (*sign* 1) or leaves it (-1)."""
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            rows = self._users.writable(key, dict)
            users = rows.get(row, frozenset())
            users = users | {uid} if sign > 0 else users - {uid}
            if users:
                rows[row] = users
            else:
                rows.pop(row, None)
                if not rows:
                    self._users.drop(key)

    def users(self, key: str) -> Mapping[int, frozenset[str]]:
        """By row, the uids of the pods that take node resources through the claim *key* (`namespace/name`)."""
        return self._users.get(key) or _NOBODY
