"""The rules of the pod group cycle since 1.37: member checks, PlacementFeasible and PodGroupPostFilter.

The package may import the modules of `cycle` and what they may import. It does no I/O and reads no clock.
"""
