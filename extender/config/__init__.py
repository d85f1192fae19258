"""Load, default, validate, expand and render a `KubeSchedulerConfiguration`, and parse feature gates.

The package also decodes plugin arguments to the types that the plugins define. `legacy_policy` converts documents of
the old Policy API.

The package may import only `api` and `basics`. It opens no file, and it knows plugins only by name.
"""
