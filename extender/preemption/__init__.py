"""Select a node and the pods to evict from it, so that a pod or a pod group fits.

`eligibility` checks whether a pod may preempt. `candidates` searches for nodes; `victims` selects the pods to evict,
for many nodes at a time, in a `dry_run`. `disruption_budgets` counts PDB violations. `plan` selects one of the
candidates. `extender_victims` reviews the victims in a request to the `preempt` verb. `pod_group_preemption` selects
victims in the whole cluster for a pod group. `group_victims_on_node` selects pods and pod groups as victims for a
single pod. `assignment_dry_run` filters several pods on their proposed nodes. `preemption_units` lists the pods that
are evicted together.

The package may import `cycle`, `framework`, `cache` and the packages below them. It imports no plugin. Its result is a
plan: it evicts no pod itself. It does no I/O and reads no clock.
"""
