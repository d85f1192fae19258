"""Our decisions against those of a real kube-scheduler on the same cluster, pod by pod."""

from collections.abc import Iterator

import pytest

from tests.controlplane import mixed
from tests.controlplane.agreement import decided, disagreement
from tests.controlplane.api import Api, key
from tests.controlplane.ours import Ours, lists
from tests.controlplane.plane import ControlPlane


@pytest.fixture
def cluster(control_plane: ControlPlane, api: Api) -> Iterator[Api]:
    """Fifty unlike nodes, and a running kube-scheduler that knows them."""
    for thing in [*mixed.surroundings(), *mixed.nodes()]:
        api.create(thing)
    scheduler = control_plane.scheduler()
    yield api
    control_plane.end(scheduler)


@pytest.mark.parametrize("seed", [1])
def test_two_hundred_unlike_pods_go_where_kube_scheduler_puts_them(cluster: Api, seed: int) -> None:
    """One after another; a pod that is refused is deleted, so that it does not come back later.

    The node chosen is among our best, as kube-scheduler takes one of the best by chance, and messages are equal.
    """
    core, wrong, counts = Ours(), [], {"placed": 0, "refused": 0, "held back": 0}
    for manifest in mixed.pods(seed):
        before = lists(cluster)
        pod = cluster.create(manifest)
        theirs = cluster.wait_for(pod, decided, f"a decision about {key(pod)}")
        ours = core.about(pod, before)
        found = disagreement(theirs, ours)
        if found:
            wrong.append(f"{key(pod)}: {found}")
        if theirs["spec"].get("nodeName"):
            counts["placed"] += 1
        else:
            counts["held back" if ours["preEnqueue"] else "refused"] += 1
            cluster.delete(theirs)
    assert wrong == []
    assert all(count >= 10 for count in counts.values()), counts
