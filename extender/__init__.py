"""The Kubernetes scheduler in Python, as a standalone scheduler, as an HTTP extender and as a simulator."""

__version__ = "0.1.0"
