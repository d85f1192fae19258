"""Configuration: `KubeSchedulerConfiguration` read, defaulted, checked, expanded and written.

Inside: the frozen model, strict decoding (also for plugin arguments, whose types live with the plugins), the defaults,
validation, the expansion of plugin sets, and the YAML of `--write-config-to`.
Imports `basics` and `objects` only. It never opens a file and never knows which plugins exist beyond their names.
"""
