"""Devices and who gets them: pools of slices, what is taken, and the search for an allocation of claims on a node.

May import cluster, config, cel, objects and basics. Says what could be allocated; plugins say what follows for pods and
plan the writes.
"""
