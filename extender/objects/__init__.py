"""Kubernetes objects as the scheduler reads them: typed, frozen, and what their fields mean.

Inside are the object types (meta, pod, affinity, volumes, node, storage, policy, workload, resource, groups), the
table of kinds, the codec between bytes and objects, and the rules that follow from objects alone: quantities, times,
selectors, tolerations and resource requests.

It may import `extender.basics` and nothing else of this package. It never does I/O, never reads a clock, and never
knows more than the objects it is given.
"""
