"""The built-in plugins: one file each, named after the plugin, whose docstring is its manual.

May import preemption, decide, framework and below, but not `client`. No plugin imports another; none reads a clock,
writes a log or talks to anything: what a plugin needs it is handed, what it decides it returns.
"""
