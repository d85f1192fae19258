"""Making room by evicting pods of lower priority: who may, on which nodes it helps, which pods go, which node is best.

`eligibility` says whether a pod may preempt; `candidates` looks for nodes and lets `victims` find the pods to evict,
many nodes at a time, on a `trial` of the cluster without them; `budgets` counts broken disruption budgets; `choose`
picks the node. `offered` is the other way round: victims come from outside and are checked. `room` looks for victims
anywhere in the cluster, for a whole pod group; `units` says who is evicted together.

May import `decide`, `framework`, `cluster` and below. Imports no plugin. Evicts nothing: what comes out is a plan.
Does no I/O and reads no clock.
"""
