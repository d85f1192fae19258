"""Convert victims between the payloads of preempt and `preemption.extender_victims`."""

from collections.abc import Mapping

from extender.api.extender_v1 import MetaPod, MetaVictims
from extender.event_loop.cooperative_iteration import iterate_cooperatively
from extender.preemption.extender_victims import ReviewedVictims


async def extract_victim_uids(offered_victims: Mapping[str, MetaVictims]) -> dict[str, tuple[str, ...]]:
    """Return the uids of the victims by node name."""
    victim_uids: dict[str, tuple[str, ...]] = {}
    async for name, victims in iterate_cooperatively(offered_victims.items()):
        victim_uids[name] = tuple([pod.uid for pod in victims.pods])
    return victim_uids


def build_accepted_victims(
    reviewed_victims: ReviewedVictims, offered_victims: Mapping[str, MetaVictims]
) -> dict[str, MetaVictims]:
    """Return the victims by node name in the result of preempt.

    They are *reviewed_victims*, with the *offered_victims* of the request that are not in the cache. Victims are sorted
    by importance, highest first, because kube-scheduler expects the most important one first. Pods that are not in the
    cache come last. PDB violations are counted again. If a victim is not in the cache, the count is at least that of
    the request, because that pod may violate a budget.

    Source: pkg/scheduler/framework/preemption/preemption.go, pickOneNodeForPreemption (1.36).
    """
    victims: dict[str, MetaVictims] = {}
    for name, candidate in reviewed_victims.candidates.items():
        unknown_uids = reviewed_victims.unknown_uids.get(name, ())
        uids = (*(victim.uid for victim in candidate.victims), *unknown_uids)
        num_pdb_violations = (
            max(candidate.num_pdb_violations, offered_victims[name].num_pdb_violations)
            if unknown_uids
            else candidate.num_pdb_violations
        )
        if uids:
            victims[name] = MetaVictims(tuple(map(MetaPod, uids)), num_pdb_violations)
    return victims
