"""Preemption: select a node and the pods to evict from it, so that a pod or a pod group fits.

`eligibility` checks whether a pod may preempt. `candidates` searches for nodes; `victims` selects the pods to evict,
for many nodes at a time, in a `dry_run`. `disruption_budgets` counts PDB violations. `select_candidate` selects the
node. `extender_victims` reviews the victims in a request to the `preempt` verb. `pod_group_preemption` selects victims
in the whole cluster for a pod group; `preemption_units` lists the pods that are evicted together.

May import `cycle`, `framework`, `cache` and below. Imports no plugin. Evicts nothing: the result is a plan. Does no
I/O and reads no clock.
"""
