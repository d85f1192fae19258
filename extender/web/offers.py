"""The victims that a scheduler offers, between the wire and `preemption.offered`."""

from collections.abc import Mapping

from extender.objects.extender_v1 import MetaPod, MetaVictims, PreemptionResult
from extender.preemption.offered import Settled


def uids(offered: Mapping[str, MetaVictims]) -> dict[str, tuple[str, ...]]:
    """The uids of the victims by node name."""
    return {name: tuple(pod.uid for pod in each.pods) for name, each in offered.items()}


def answered(settled: Settled, offered: Mapping[str, MetaVictims]) -> PreemptionResult:
    """The answer of preempt.

    Victims stand by falling importance, as kube-scheduler takes the first for the most important (E029); pods that are
    not known here come last. Broken budgets are counted anew; where a pod is not known, the count is at least the one
    offered, since nobody here can say whether that pod was among them.
    """
    found: dict[str, MetaVictims] = {}
    for name, candidate in settled.candidates.items():
        strangers = settled.unknown.get(name, ())
        pods = (*(victim.uid for victim in candidate.victims), *strangers)
        broken = max(candidate.violations, offered[name].num_pdb_violations) if strangers else candidate.violations
        if pods:
            found[name] = MetaVictims(tuple(map(MetaPod, pods)), broken)
    return PreemptionResult(found)
