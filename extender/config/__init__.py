"""The `KubeSchedulerConfiguration`: loading, defaulting, validation, expansion of plugin sets, rendering as YAML.

Strict decoding is also used for plugin arguments, whose types are in the modules of the plugins. The package also
contains feature gates and the legacy Policy API.

May import `basics` and `api` only. Opens no file and knows plugins by name only.
"""
