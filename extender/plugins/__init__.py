"""The built-in plugins: one module or package per plugin. The docstring of a module is the plugin's reference page.

Plugins may import preemption, cycle, framework and the layers below, but not `client`, and not each other. A plugin
does no I/O: it has no logger and no API client. It computes results from its arguments.
"""
