"""Kubernetes API objects: their types, and rules that depend on the objects alone.

`kinds` defines the types, `scheme` maps apiVersion and kind to them, and `codec` decodes and encodes them. The other
modules implement quantities, resource requests, selectors, tolerations, timestamps, defaults and validation.

May import `extender.basics` only. Does no I/O and reads no clock.
"""
