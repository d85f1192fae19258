"""Load a Policy document of releases up to 1.22, and convert it to an equivalent `KubeSchedulerConfiguration`.

The package may import `config`, `api` and `basics`. It opens no file, and it knows plugins only by name.
"""
