"""The Policy API of releases up to 1.22, and its conversion to an equivalent `KubeSchedulerConfiguration`.

May import `config` and `basics`. Knows plugins by name only and reads no file.
"""
