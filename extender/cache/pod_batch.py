"""Many assigned pods in arrays, so that a dry run can remove or add thousands of them with a few array operations."""

from collections.abc import Callable, Sequence

import numpy as np

from extender.basics.memo import Memo
from extender.cache.pod_info import AssignedPodInfo
from extender.cache.pod_signature import PodSignature
from extender.cache.tables.arrays import IntArray
from extender.cache.tables.volume_uses import NO_USES


class PodBatch(Memo):
    """Assigned pods and their requests as arrays.

    Attributes:
        rows: the node row of each pod, int64, shape (len(pods),).
        signatures: the distinct signatures of the pods. After `select`, signatures without pods remain.
        signature_index: the index in `signatures` of each pod, int64, shape (len(pods),).
        resource_ids: the ids of the resources that any signature requests.
        requests: requests by signature, int64, shape (len(resource_ids), len(signatures)): milli-CPU, bytes, counts.
        nonzero_requests: non-zero requests by signature, int64, shape (2, len(signatures)): milli-CPU, bytes of memory.
        indices_with_ports_volumes_or_claims: the indices of pods that use host ports or volumes, or take node resources
            through claims.
    """

    def __init__(self, pods: Sequence[AssignedPodInfo], rows: IntArray) -> None:
        signatures = [pod.signature for pod in pods]
        self.signatures = tuple(dict.fromkeys(signatures))
        index_by_signature = {signature: index for index, signature in enumerate(self.signatures)}
        signature_index: IntArray = np.fromiter(
            map(index_by_signature.__getitem__, signatures), dtype=np.int64, count=len(signatures)
        )
        self.resource_ids = tuple(
            {resource_id: None for signature in self.signatures for resource_id, _ in signature.assigned_requests}
        )
        index_by_resource_id = {resource_id: index for index, resource_id in enumerate(self.resource_ids)}
        self.requests = np.zeros((len(self.resource_ids), len(self.signatures)), dtype=np.int64)
        self.nonzero_requests = np.zeros((2, len(self.signatures)), dtype=np.int64)
        self._has_ports_volumes_or_claims = np.zeros(len(self.signatures), dtype=np.bool_)
        for index, signature in enumerate(self.signatures):
            for resource_id, amount in signature.assigned_requests:
                self.requests[index_by_resource_id[resource_id], index] = amount
            self.nonzero_requests[:, index] = signature.assigned_nonzero_requests
            self._has_ports_volumes_or_claims[index] = (
                bool(signature.host_ports)
                or signature.volume_uses is not NO_USES
                or signature.uses_node_allocatable_claims
            )
        self._set_pods(pods, rows, signature_index)

    def _set_pods(self, pods: Sequence[AssignedPodInfo], rows: IntArray, signature_index: IntArray) -> None:
        super().__init__()  # start with an empty memo, also after `select`
        self.pods, self.rows, self.signature_index = pods, rows, signature_index
        self.indices_with_ports_volumes_or_claims = frozenset(
            np.flatnonzero(self._has_ports_volumes_or_claims[signature_index]).tolist()
        )

    def select(self, indices: IntArray) -> "PodBatch":
        """Return a batch of the pods at *indices* (int64), in this order."""
        batch = object.__new__(PodBatch)
        batch.signatures, batch.resource_ids = self.signatures, self.resource_ids
        batch.requests, batch.nonzero_requests = self.requests, self.nonzero_requests
        batch._has_ports_volumes_or_claims = self._has_ports_volumes_or_claims
        pods = list(map(self.pods.__getitem__, indices.tolist()))
        batch._set_pods(pods, self.rows[indices], self.signature_index[indices])
        return batch

    def __len__(self) -> int:
        return len(self.pods)

    def map_signatures(self, function: Callable[[PodSignature], int]) -> IntArray:
        """Apply *function* to the signature of each pod: int64, shape (len(pods),)."""
        values = np.fromiter(map(function, self.signatures), dtype=np.int64, count=len(self.signatures))
        return values[self.signature_index]

    def sum_by_row(self, values: IntArray, size: int) -> IntArray:
        """Sum *values*, one for each pod, by node row: int64, shape (*size*,)."""
        return np.bincount(self.rows, weights=values, minlength=size)[:size].astype(np.int64)
