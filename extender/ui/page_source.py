"""The interface between the pages and a cluster, recorded or live."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from extender.analysis.explain import PodReport
from extender.api.kinds.pod import Pod
from extender.cache.snapshot import Snapshot
from extender.ui.waiting_view import AlikePods

_EXPLAINED_NODES_PER_PAGE: Final = 100_000
"""The limit of the number of entries on a page of waiting pods, times the number of nodes."""

_MIN_ENTRIES_PER_PAGE, _MAX_ENTRIES_PER_PAGE = 10, 200


class PageSource(Protocol):
    """Provides the contents of the pages.

    Attributes:
        title: the name of the cluster.
        command_options: the options that select the same cluster and configuration on the command line.
        is_live: whether the cluster changes.
    """

    title: str
    command_options: str
    is_live: bool

    def get_snapshot(self) -> Snapshot:
        """Return the snapshot of the cluster. The caller must not keep it."""

    def get_cluster_document(self) -> bytes:
        """Return the document of the page Cluster as JSON; see `make_cluster_document`."""

    def get_state_id(self) -> int:
        """Return the number of the state that the pages Cluster and Waiting pods show; equal only for equal states."""

    def get_version(self) -> int:
        """Return the number of the last change that these pages would show."""

    def get_totals(self) -> Sequence[Mapping[str, Any]]:
        """Return the use of each resource in the whole cluster; see `make_cluster_document`."""

    def list_problems(self) -> Sequence[str]:
        """Return a line for each right that is missing and each watch that is lost; none while all is well."""

    def get_node_names(self) -> Mapping[str, str]:
        """Return the node name of each pod by key, `namespace/name`; an empty name for a pending pod."""

    def list_pods(self) -> Iterable[Pod]:
        """Return all pods, pending and assigned."""

    def list_waiting_pods(self) -> Sequence[Sequence[Pod]]:
        """Return the pending pods in groups. The pods of a group have the same explanation."""

    def list_pods_of_other_schedulers(self) -> Sequence[Pod]:
        """Return the pending pods whose schedulers have no profile here, and which are not explained."""

    def describe_waiting_pods(self, pods: Sequence[Pod]) -> AlikePods:
        """Return the entry of a group of `list_waiting_pods` for the page Waiting pods."""

    def explain(self, key: str) -> tuple[Pod, PodReport]:
        """Return the pod with the key `namespace/name`, and its explanation.

        Raises:
            InputError: the pod is unknown, has finished, or belongs to a scheduler without a profile.
        """


def get_entries_per_page(node_count: int) -> int:
    """Return the number of entries on a page of waiting pods, since each needs an explanation on every node."""
    entries = _EXPLAINED_NODES_PER_PAGE // max(node_count, 1)
    return max(_MIN_ENTRIES_PER_PAGE, min(_MAX_ENTRIES_PER_PAGE, entries))
