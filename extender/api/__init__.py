"""Define the Kubernetes API objects, decode and encode them, and compute what depends on one object alone.

`kinds` defines the types, `scheme` maps apiVersion and kind to them, and `codec` decodes and encodes them. The other
modules implement quantities, resource requests, selectors, tolerations, timestamps, defaults and validation.

The package may import only `basics`. It does no I/O and reads no clock.
"""
