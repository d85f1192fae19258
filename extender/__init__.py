"""The Kubernetes scheduler in Python: an HTTP extender, a simulator and, on the same core, a scheduler."""

__version__ = "0.1.0"
