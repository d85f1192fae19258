"""Implement the built-in plugins, each in one module or package.

The docstring of a plugin's module is its reference page. Plugins may import `preemption`, `cycle`, `framework` and the
packages below them, but not `client`, and not each other. A plugin does no I/O: it has no logger and no API client. It
computes results from its arguments.
"""
