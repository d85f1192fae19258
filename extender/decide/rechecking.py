"""Whether a node still takes the pod that is about to be bound to it.

Nodes go, are cordoned and tainted while pods wait for Permit, for volumes and for our own rate of calls, and the API
server binds a pod to any name. kube-scheduler lets that happen; here the attempt fails and the pod is tried again, on
purpose. A node that did not change is not asked about, so nothing else differs.
"""

from dataclasses import replace

from extender.cluster.pods import PodQuery
from extender.cluster.state import ClusterState
from extender.decide.engine import Engine
from extender.decide.feasible import feasible
from extender.framework.points import Reads
from extender.framework.profiles import Profile
from extender.framework.verdict import Status, error
from extender.objects.node import Node


def node_now(state: ClusterState, name: str) -> Node | None:
    """Node *name*; None if there is none."""
    cluster = state.snapshot()
    row = cluster.row(name)
    return None if row is None else cluster.nodes[row]


def refused(
    pod: PodQuery, name: str, chosen: Node | None, state: ClusterState, profile: Profile, engine: Engine
) -> Status | None:
    """Why node *name*, which was *chosen* as it was then, does not take *pod* any more; None if it does.

    Only the filters that go by the node alone are asked: the pod itself counts among those on the node.
    """
    now = node_now(state, name)
    if now is None:
        return error(f'node "{name}" was deleted before the pod was bound to it')
    if now is chosen:
        return None
    alone = tuple(each for each in profile.filters if getattr(each, "filter_reads", None) is Reads.NODE)
    names = {each.name for each in alone}
    before = tuple(each for each in profile.pre_filters if each.name in names)
    asked = replace(profile, filters=alone, pre_filters=before)
    found = feasible(pod, state.snapshot(), asked, engine, within=frozenset({name}))
    if found.any:
        return None
    why = ", ".join(found.counted()) or found.message()
    return error(f'node "{name}" changed before the pod was bound to it: {why}')
